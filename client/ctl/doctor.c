/* SPDX-License-Identifier: MIT */
/*
 * Everything is read from files, limits and the environment, so that looking changes nothing: no
 * runtime is loaded, no device opened. What only a runtime knows the daemon is asked for.
 */
#include "doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENOUGH_LOCKED (64ull << 20)

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[_DOCTOR_LEVEL_N] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_BAD] = "bad",
	};

	return names[level];
}

void doctor_deinit(struct doctor *doctor)
{
	free(doctor->findings);
	doctor->findings = NULL;
	doctor->n = 0;
}

/* Names of files and variables may be anything. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

void doctor_add(struct doctor *doctor, enum doctor_level level, const char *topic, const char *fix,
	const char *format, ...)
{
	struct doctor_finding *findings =
		reallocarray(doctor->findings, doctor->n + 1, sizeof(*findings));
	struct doctor_finding *finding = NULL;
	va_list args;

	if (!findings) {
		doctor->failed = true;
		return;
	}
	doctor->findings = findings;
	finding = &findings[doctor->n++];
	*finding = (struct doctor_finding){.level = level};
	(void)snprintf(finding->topic, sizeof(finding->topic), "%s", topic);
	(void)snprintf(finding->fix, sizeof(finding->fix), "%s", fix ? fix : "");
	va_start(args, format);
	(void)vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	make_plain(finding->topic);
	make_plain(finding->text);
	make_plain(finding->fix);
}

/* ---- files ---- */

static void path_of(const struct doctor *doctor, const char *name, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%s%s", doctor->root, name);
}

static bool exists(const struct doctor *doctor, const char *name)
{
	char path[PATH_MAX];

	path_of(doctor, name, path);
	return access(path, F_OK) == 0;
}

/* The first line that contains @part (NULL: the first), without its end. */
static bool read_line(
	const struct doctor *doctor, const char *name, const char *part, char *line, size_t bytes)
{
	char path[PATH_MAX];
	FILE *file = NULL;
	bool found = false;

	path_of(doctor, name, path);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, (int)bytes, file))
		found = !part || strstr(line, part);
	(void)fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

typedef void (*entry_fn)(struct doctor *doctor, const char *path, void *ctx);

/* Entries of @dir that begin with @prefix and go on with a digit, or anything for "". */
static uint32_t each_entry(
	struct doctor *doctor, const char *dir, const char *prefix, entry_fn fn, void *ctx)
{
	char path[PATH_MAX];
	size_t length = strlen(prefix);
	struct dirent *entry = NULL;
	DIR *open_dir = NULL;
	uint32_t n = 0;

	path_of(doctor, dir, path);
	open_dir = opendir(path);
	while (open_dir && (entry = readdir(open_dir)) != NULL) {
		char next = '\0';

		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, length) != 0)
			continue;
		next = entry->d_name[length];
		if (length > 0 && (next < '0' || next > '9'))
			continue;
		n++;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (fn)
			fn(doctor, path, ctx);
	}
	if (open_dir)
		(void)closedir(open_dir);
	return n;
}

/* ---- device nodes ---- */

static void name_of_group(gid_t gid, char name[64])
{
	const struct group *group = getgrgid(gid);

	if (group)
		(void)snprintf(name, 64, "%s", group->gr_name);
	else
		(void)snprintf(name, 64, "%u", (unsigned int)gid);
}

static void name_of_user(char name[64])
{
	const struct passwd *user = getpwuid(geteuid());

	if (user)
		(void)snprintf(name, 64, "%s", user->pw_name);
	else
		(void)snprintf(name, 64, "%u", (unsigned int)geteuid());
}

static void look_at_node(struct doctor *doctor, const char *name, void *ctx)
{
	char path[PATH_MAX];
	char fix[200];
	char group[64];
	char user[64];
	struct stat st = {0};

	(void)ctx;
	path_of(doctor, name, path);
	if (stat(path, &st) != 0) {
		doctor_add(doctor, DOCTOR_BAD, "nodes", "load the driver, or give the container it",
			"%.100s: %s", name, strerror(errno));
		return;
	}
	name_of_group(st.st_gid, group);
	name_of_user(user);
	if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0) {
		doctor_add(doctor, DOCTOR_OK, "nodes", NULL, "%.100s: user %s may open it", name,
			user);
		return;
	}
	(void)snprintf(fix, sizeof(fix), "usermod -aG %s %s, and log in again", group, user);
	doctor_add(doctor, DOCTOR_BAD, "nodes", fix,
		"%.100s: user %s may not open it (group %s, mode %04o)", name, user, group,
		(unsigned int)st.st_mode & 07777);
}

/* ---- families ---- */

struct family {
	const char *name;
	const char *driver;
	const char *module; /* is there while the driver is loaded */
	const char *version;
	const char *nodes[3];
	const char *more_dir;
	const char *more;
	const char *libraries[6];
	const char *install;
};

static const struct family families[] = {
	{
		.name = "AMD",
		.driver = "amdgpu",
		.module = "/sys/module/amdgpu",
		.version = "/sys/module/amdgpu/version",
		.nodes = {"/dev/kfd"},
		.more_dir = "/dev/dri",
		.more = "renderD",
		.libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
		.install = "install ROCm's HIP runtime (libamdhip64)",
	},
	{
		.name = "NVIDIA",
		.driver = "nvidia",
		.module = "/proc/driver/nvidia",
		.version = "/sys/module/nvidia/version",
		.nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"},
		.more_dir = "/dev",
		.more = "nvidia",
		.libraries = {"libcuda.so.1"},
		.install = "install the libraries of NVIDIA's driver (libcuda1)",
	},
};

/* Where the loader looks, as far as that can be said without it. */
static bool find_library(const struct doctor *doctor, const char *name, char path[PATH_MAX])
{
	static const char *const dirs[] = {"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/opt/rocm/lib",
		"/usr/local/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"};
	const char *more = getenv("LD_LIBRARY_PATH");

	for (size_t i = 0; i < RX_ARRAY_SIZE(dirs); i++) {
		(void)snprintf(path, PATH_MAX, "%s/%s", dirs[i], name);
		if (exists(doctor, path))
			return true;
	}
	while (more && *more) {
		size_t length = strcspn(more, ":");

		(void)snprintf(path, PATH_MAX, "%.*s/%s", (int)length, more, name);
		if (length > 0 && exists(doctor, path))
			return true;
		more += length + (more[length] == ':');
	}
	return false;
}

static void look_at_libraries(struct doctor *doctor, const struct family *family)
{
	char path[PATH_MAX];

	for (size_t i = 0; family->libraries[i]; i++) {
		if (!find_library(doctor, family->libraries[i], path))
			continue;
		doctor_add(doctor, DOCTOR_OK, "runtime", NULL, "%s: %.200s", family->name, path);
		return;
	}
	doctor_add(doctor, DOCTOR_BAD, "runtime", family->install,
		"%s: no %s where libraries usually are", family->name, family->libraries[0]);
}

/* True: there is a driver of this family. */
static bool look_at_family(struct doctor *doctor, const struct family *family)
{
	char version[80] = "";

	if (!exists(doctor, family->module))
		return false;
	if (!read_line(doctor, family->version, NULL, version, sizeof(version)))
		(void)snprintf(version, sizeof(version), "of the kernel");
	doctor_add(doctor, DOCTOR_OK, "driver", NULL, "%s: %s, version %.60s", family->name,
		family->driver, version);
	for (size_t i = 0; family->nodes[i]; i++)
		look_at_node(doctor, family->nodes[i], NULL);
	if (each_entry(doctor, family->more_dir, family->more, look_at_node, NULL) == 0)
		doctor_add(doctor, DOCTOR_BAD, "nodes",
			"give the container the devices, or look at the driver's log (dmesg)",
			"no %s/%s*: the driver is loaded, and shows no device", family->more_dir,
			family->more);
	look_at_libraries(doctor, family);
	return true;
}

/* ---- what makes GPUs slow ---- */

static void look_at_amd(struct doctor *doctor)
{
	char line[4096];
	const char *scratch = getenv("HSA_NO_SCRATCH_RECLAIM");

	if (each_entry(doctor, "/sys/class/iommu", "", NULL, NULL) > 0 &&
		read_line(doctor, "/proc/cmdline", NULL, line, sizeof(line)) &&
		!strstr(line, "iommu=pt"))
		doctor_add(doctor, DOCTOR_NOTE, "iommu",
			"boot with iommu=pt (amd_iommu=on iommu=pt)",
			"the IOMMU translates every access: slower between GPUs, and may hang");
	else
		doctor_add(doctor, DOCTOR_OK, "iommu", NULL, "off, or passes accesses through");
	if (!scratch || strcmp(scratch, "1") != 0)
		doctor_add(doctor, DOCTOR_NOTE, "environment",
			"set HSA_NO_SCRATCH_RECLAIM=1 for rcclxd and for the ranks",
			"HSA_NO_SCRATCH_RECLAIM is not 1: small operations can take 5 to 10 times "
			"as long, with kernels that need scratch memory");
	if (read_line(doctor, "/proc/sys/kernel/numa_balancing", NULL, line, sizeof(line)) &&
		strcmp(line, "0") != 0)
		doctor_add(doctor, DOCTOR_NOTE, "numa", "sysctl kernel.numa_balancing=0",
			"the kernel moves pages between NUMA nodes, which stops GPUs that use them");
}

static void look_at_nvidia(struct doctor *doctor)
{
	const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/control", pipe ? pipe : "/tmp/nvidia-mps");
	if (exists(doctor, path))
		doctor_add(doctor, DOCTOR_OK, "sharing", NULL,
			"MPS is there: processes that share a GPU run at the same time");
	else
		doctor_add(doctor, DOCTOR_NOTE, "sharing",
			"nvidia-cuda-mps-control -d, before all that use the GPU",
			"no MPS: processes that share a GPU, rcclxd among them, take turns, which "
			"costs calls in streams about 9 us for each rank on it");
}

static void look_at_environment(struct doctor *doctor)
{
	static const char *const hiding[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
		"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};
	const char *arch = getenv("HSA_OVERRIDE_GFX_VERSION");

	for (size_t i = 0; i < RX_ARRAY_SIZE(hiding); i++) {
		const char *value = getenv(hiding[i]);

		if (value)
			doctor_add(doctor, DOCTOR_NOTE, "environment", value[0] ? NULL : "unset it",
				"%s is \"%.100s\": programs see only these devices; rcclxd has an "
				"environment of its own",
				hiding[i], value);
	}
	if (arch)
		doctor_add(doctor, DOCTOR_BAD, "environment", "unset HSA_OVERRIDE_GFX_VERSION",
			"HSA_OVERRIDE_GFX_VERSION is \"%.40s\": kernels of another device would be "
			"loaded",
			arch);
}

static void look_at_limits(struct doctor *doctor)
{
	struct rlimit limit = {0};

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= ENOUGH_LOCKED)
		doctor_add(doctor, DOCTOR_OK, "limits", NULL, "memory that may be locked: enough");
	else
		doctor_add(doctor, DOCTOR_NOTE, "limits",
			"LimitMEMLOCK=infinity for services, memlock in limits.conf for users",
			"%llu KiB of memory may be locked (ulimit -l): devices may not reach host "
			"memory that is larger",
			(unsigned long long)limit.rlim_cur / 1024);
}

void doctor_examine(struct doctor *doctor)
{
	bool amd = look_at_family(doctor, &families[0]);
	bool nvidia = look_at_family(doctor, &families[1]);

	if (!amd && !nvidia)
		doctor_add(doctor, DOCTOR_NOTE, "driver", NULL,
			"neither amdgpu nor nvidia is loaded: only host memory is served");
	if (amd)
		look_at_amd(doctor);
	if (nvidia)
		look_at_nvidia(doctor);
	if (amd || nvidia)
		look_at_environment(doctor);
	look_at_limits(doctor);
}

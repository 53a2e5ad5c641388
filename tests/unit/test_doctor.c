/* SPDX-License-Identifier: MIT */
/* rcclxctl doctor on made-up machines: a tree of files that stands for the root. */
#include "../../client/ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static void run(const char *command, const char *path, const char *after)
{
	char line[PATH_MAX + 100];

	(void)snprintf(line, sizeof(line), "%s %s%s%s", command, root, path, after);
	assert_int_equal(system(line), 0);
}

static void put(const char *name, const char *content)
{
	char path[PATH_MAX];
	FILE *file = NULL;

	run("mkdir -p $(dirname", name, ")");
	(void)snprintf(path, sizeof(path), "%s%s", root, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(root, sizeof(root), "/tmp/rcclx-doctor-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	run("rm -rf", "", "");
	return 0;
}

static const struct doctor_finding *find(const struct doctor *doctor, const char *part)
{
	for (size_t i = 0; i < doctor->n; i++)
		if (strstr(doctor->findings[i].text, part))
			return &doctor->findings[i];
	return NULL;
}

static void expect(
	const struct doctor *doctor, enum doctor_level level, const char *part, const char *fix)
{
	const struct doctor_finding *finding = find(doctor, part);

	if (!finding)
		fail_msg("nothing about \"%s\"", part);
	assert_int_equal(finding->level, level);
	if (!strstr(finding->fix, fix) || (fix[0] == '\0' && finding->fix[0] != '\0'))
		fail_msg("\"%s\": the advice is \"%s\", not \"%s\"", part, finding->fix, fix);
}

static void machine_of_amd(void)
{
	put("/sys/module/amdgpu/version", "6.12.12\n");
	put("/dev/kfd", "");
	put("/dev/dri/renderD128", "");
	put("/dev/dri/renderD129", "");
	put("/dev/dri/card0", "");
	put("/opt/rocm/lib/libamdhip64.so.6", "");
	put("/proc/cmdline", "root=/dev/sda1 iommu=pt quiet\n");
	put("/sys/class/iommu/ivhd0/x", "");
}

static void a_machine_without_gpus(void **state)
{
	struct doctor doctor = {.root = root};

	(void)state;
	doctor_examine(&doctor);
	expect(&doctor, DOCTOR_NOTE, "neither amdgpu nor nvidia", "");
	assert_null(find(&doctor, "/dev/"));
	doctor_deinit(&doctor);
}

static void a_good_machine(void **state)
{
	struct doctor doctor = {.root = root};

	(void)state;
	machine_of_amd();
	assert_int_equal(setenv("HSA_NO_SCRATCH_RECLAIM", "1", 1), 0);
	doctor_examine(&doctor);
	expect(&doctor, DOCTOR_OK, "amdgpu, version 6.12.12", "");
	expect(&doctor, DOCTOR_OK, "/dev/kfd: user", "");
	expect(&doctor, DOCTOR_OK, "/dev/dri/renderD128: user", "");
	expect(&doctor, DOCTOR_OK, "/dev/dri/renderD129: user", "");
	expect(&doctor, DOCTOR_OK, "/opt/rocm/lib/libamdhip64.so.6", "");
	expect(&doctor, DOCTOR_OK, "passes accesses through", "");
	assert_null(find(&doctor, "card0"));
	for (size_t i = 0; i < doctor.n; i++)
		assert_int_not_equal(doctor.findings[i].level, DOCTOR_BAD);
	doctor_deinit(&doctor);
	assert_int_equal(unsetenv("HSA_NO_SCRATCH_RECLAIM"), 0);
}

static void what_is_wrong_is_named(void **state)
{
	struct doctor doctor = {.root = root};

	(void)state;
	machine_of_amd();
	put("/proc/cmdline", "quiet\n");
	put("/proc/sys/kernel/numa_balancing", "1\n");
	run("rm", "/opt/rocm/lib/libamdhip64.so.6", "");
	run("rm", "/dev/dri/renderD*", "");
	run("rm", "/dev/kfd", "");
	assert_int_equal(setenv("HSA_OVERRIDE_GFX_VERSION", "9.0.0", 1), 0);
	assert_int_equal(setenv("HIP_VISIBLE_DEVICES", "", 1), 0);
	doctor_examine(&doctor);
	expect(&doctor, DOCTOR_BAD, "/dev/kfd: No such file", "load the driver");
	expect(&doctor, DOCTOR_BAD, "no /dev/dri/renderD*", "give the container the devices");
	expect(&doctor, DOCTOR_BAD, "no libamdhip64.so.7", "install ROCm");
	expect(&doctor, DOCTOR_NOTE, "the IOMMU translates", "iommu=pt");
	expect(&doctor, DOCTOR_NOTE, "HSA_NO_SCRATCH_RECLAIM is not 1", "HSA_NO_SCRATCH_RECLAIM=1");
	expect(&doctor, DOCTOR_NOTE, "moves pages", "kernel.numa_balancing=0");
	expect(&doctor, DOCTOR_BAD, "HSA_OVERRIDE_GFX_VERSION is \"9.0.0\"", "unset");
	expect(&doctor, DOCTOR_NOTE, "HIP_VISIBLE_DEVICES is \"\"", "unset it");
	doctor_deinit(&doctor);
	assert_int_equal(unsetenv("HSA_OVERRIDE_GFX_VERSION"), 0);
	assert_int_equal(unsetenv("HIP_VISIBLE_DEVICES"), 0);
}

/* As another user; root may open everything. */
static void nodes_that_may_not_be_opened(void **state)
{
	struct doctor doctor = {.root = root};
	uid_t before = geteuid();

	(void)state;
	machine_of_amd();
	run("chmod 0660", "/dev/kfd", "");
	if (before == 0) {
		run("chmod -R go+rX", "/", "");
		run("chmod 0660", "/dev/kfd", "");
		assert_int_equal(seteuid(65534), 0);
	} else {
		run("chmod 0", "/dev/kfd", "");
	}
	doctor_examine(&doctor);
	assert_int_equal(seteuid(before), 0);
	expect(&doctor, DOCTOR_BAD, "may not open it (group ", "usermod -aG ");
	doctor_deinit(&doctor);
}

static void nvidia_with_and_without_mps(void **state)
{
	struct doctor doctor = {.root = root};

	(void)state;
	put("/proc/driver/nvidia/version", "NVRM\n");
	put("/sys/module/nvidia/version", "580.159\n");
	put("/dev/nvidiactl", "");
	put("/dev/nvidia-uvm", "");
	put("/dev/nvidia0", "");
	put("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
	doctor_examine(&doctor);
	expect(&doctor, DOCTOR_OK, "nvidia, version 580.159", "");
	expect(&doctor, DOCTOR_OK, "/dev/nvidia0: user", "");
	expect(&doctor, DOCTOR_OK, "libcuda.so.1", "");
	expect(&doctor, DOCTOR_NOTE, "no MPS", "nvidia-cuda-mps-control -d");
	doctor_deinit(&doctor);
	put("/tmp/nvidia-mps/control", "");
	doctor_examine(&doctor);
	expect(&doctor, DOCTOR_OK, "MPS is there", "");
	doctor_deinit(&doctor);
}

static void little_memory_may_be_locked(void **state)
{
	struct doctor doctor = {.root = root};
	struct rlimit before = {0};
	struct rlimit little = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	little = before;
	little.rlim_cur = 64 * 1024;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	doctor_examine(&doctor);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	expect(&doctor, DOCTOR_NOTE, "64 KiB of memory may be locked", "LimitMEMLOCK=infinity");
	doctor_deinit(&doctor);
}

/* Texts go to terminals. */
static void nothing_but_plain_text(void **state)
{
	struct doctor doctor = {.root = root};

	(void)state;
	doctor_add(&doctor, DOCTOR_NOTE, "a\x1b[31m", "b\n", "%s", "c\x07");
	assert_string_equal(doctor.findings[0].topic, "a?[31m");
	assert_string_equal(doctor.findings[0].fix, "b?");
	assert_string_equal(doctor.findings[0].text, "c?");
	doctor_deinit(&doctor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_machine_without_gpus, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_good_machine, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nodes_that_may_not_be_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nvidia_with_and_without_mps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(little_memory_may_be_locked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_but_plain_text, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

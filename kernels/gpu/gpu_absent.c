/* SPDX-License-Identifier: MIT */
/*
 * A runtime that finds no device says no more than that. Whether there is none, or this user may
 * not open it, is to be seen in the device nodes.
 */
#include "gpu_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_NODE GPU_PICK("nvidiactl", "kfd")
#define MORE_DIR   GPU_PICK("", "dri/")
#define MORE_NODES GPU_PICK("nvidia0", "renderD")
#define DRIVER     GPU_PICK("nvidia", "amdgpu")

static void name_of_group(gid_t gid, char *name, size_t bytes)
{
	char buffer[4096];
	struct group group = {0};
	struct group *found = NULL;

	if (getgrgid_r(gid, &group, buffer, sizeof(buffer), &found) == 0 && found)
		(void)snprintf(name, bytes, "%s", found->gr_name);
	else
		(void)snprintf(name, bytes, "%u", (unsigned int)gid);
}

static void name_of_user(char *name, size_t bytes)
{
	char buffer[4096];
	struct passwd user = {0};
	struct passwd *found = NULL;

	if (getpwuid_r(geteuid(), &user, buffer, sizeof(buffer), &found) == 0 && found)
		(void)snprintf(name, bytes, "%s", found->pw_name);
	else
		(void)snprintf(name, bytes, "%u", (unsigned int)geteuid());
}

static int refuse(const char *path, const struct stat *st, int native, struct rx_gpu_error *error)
{
	char group[64];
	char user[64];

	name_of_group(st->st_gid, group, sizeof(group));
	name_of_user(user, sizeof(user));
	return gpu_fail(error, RX_GPU_E_PERMISSION, native,
		"user %s may not open %.60s (group %s, mode %04o): run 'usermod -aG %s %s' and log in "
		"again, or restart the service",
		user, path, group, (unsigned int)st->st_mode & 07777, group, user);
}

/* Return: RX_GPU_OK when @path is there and may be used; 0 < errno otherwise in *why_p. */
static int look(const char *path, struct stat *st, int *why_p)
{
	*why_p = 0;
	if (stat(path, st) != 0 || faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
		*why_p = errno;
	return *why_p;
}

/* A node of one device that we may not open; RX_GPU_OK when there is none. */
static int look_at_more(const char *dev_dir, int native, struct rx_gpu_error *error)
{
	char path[512];
	struct stat st = {0};
	struct dirent *entry = NULL;
	DIR *dir = NULL;
	int result = RX_GPU_OK;
	int why = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", dev_dir, MORE_DIR);
	dir = opendir(path);
	while (dir && result == RX_GPU_OK && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, MORE_NODES, strlen(MORE_NODES)) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s%s", dev_dir, MORE_DIR, entry->d_name);
		if (look(path, &st, &why) == EACCES)
			result = refuse(path, &st, native, error);
	}
	if (dir)
		(void)closedir(dir);
	return result;
}

int gpu_explain_absence(const char *dev_dir, int native, struct rx_gpu_error *error)
{
	char path[512];
	struct stat st = {0};
	int why = 0;
	int result = RX_GPU_OK;

	(void)snprintf(path, sizeof(path), "%s/%s", dev_dir, FIRST_NODE);
	if (look(path, &st, &why) == EACCES)
		return refuse(path, &st, native, error);
	if (why != 0)
		return gpu_fail(error, RX_GPU_E_ABSENT, native,
			"no GPU: %.60s: %s; either there is none, or the driver (" DRIVER
			") is not loaded, or the container has not been given the device",
			path, strerror(why));
	result = look_at_more(dev_dir, native, error);
	if (result != RX_GPU_OK)
		return result;
	return gpu_fail(error, RX_GPU_E_ABSENT, native,
		"no GPU: the " GPU_NAME
		" runtime finds none (error %d), although %.60s can be opened; "
		"look at %s and the driver's log",
		native, path, GPU_PICK("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"));
}

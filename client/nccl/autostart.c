/* SPDX-License-Identifier: MIT */
/*
 * The daemon is a grandchild, in a session of its own: it is nobody's to wait for, and no signal of
 * a terminal meets it. It ends itself when its last client has gone (rcclxd --once). A file lock
 * beside the socket is held from looking for a daemon until it answers.
 */
#include "autostart.h"

#include "debug.h"
#include "job.h"
#include "../../shm/rx_cleanup.h"
#include "../../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RCCLX_SBINDIR
#define RCCLX_SBINDIR "/usr/local/sbin"
#endif

#define ANSWER_NS  (10 * RX_NS_PER_SEC)
#define LOCK_NS    (3 * ANSWER_NS)
#define POLL_NS    (2 * RX_NS_PER_MS)
#define DIR_BYTES  48u
#define JOB_BYTES  512u
#define PATH_BYTES 128u

/* Where an id of rcclxd has nothing but zeros: a mark, and 64 bits in hexadecimal. */
#define TAG_AT     96u
#define TAG_MARK   "rcclx-once/"
#define TAG_DIGITS 16u

static_assert(TAG_AT + sizeof(TAG_MARK) + TAG_DIGITS <= NCCL_UNIQUE_ID_BYTES, "fits");

bool autostart_wanted(void)
{
	const char *text = secure_getenv("RCCLX_AUTOSTART");
	const char *socket = secure_getenv("RCCLX_SOCKET");

	/* Who names a daemon does not want another one. */
	return text && strcmp(text, "1") == 0 && (!socket || !socket[0]);
}

static void directory(char dir[DIR_BYTES])
{
	/* Not TMPDIR, which may differ from rank to rank. */
	(void)snprintf(dir, DIR_BYTES, "/tmp/rcclx-once-%u", (unsigned int)geteuid());
}

static void path_of(uint64_t number, const char *ending, char *path, size_t bytes)
{
	char dir[DIR_BYTES];

	directory(dir);
	(void)snprintf(path, bytes, "%s/%016" PRIx64 "%s", dir, number, ending);
}

/* The number in a path that path_of() made; 0: it is no such path. */
static uint64_t number_of(const char *socket)
{
	char dir[DIR_BYTES];
	uint64_t number = 0;
	size_t n = 0;

	directory(dir);
	n = strlen(dir);
	if (strncmp(socket, dir, n) != 0 || sscanf(socket + n, "/%16" SCNx64 ".sock", &number) != 1)
		return 0;
	return number;
}

static uint64_t job_number(void)
{
	char name[JOB_BYTES];
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	(void)job_name(name, sizeof(name));
	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
	return hash;
}

/* The directory is ours alone, or it is not used: others may write to /tmp. */
static ncclResult_t make_directory(void)
{
	char dir[DIR_BYTES];
	struct stat st;

	directory(dir);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return error_set(ncclSystemError, "RCCLX_AUTOSTART: cannot make %s: %m", dir);
	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 0077) != 0)
		return error_set(ncclSystemError,
			"RCCLX_AUTOSTART: %s is not a directory that belongs to this user alone "
			"(mode 0700): remove it",
			dir);
	return ncclSuccess;
}

static const char *binary(void)
{
	const char *path = secure_getenv("RCCLXD");

	return path && path[0] ? path : RCCLX_SBINDIR "/rcclxd";
}

/* In the grandchild, which may call nothing but what is safe in a signal handler. */
static _Noreturn void become_daemon(
	const char *path, const char *socket, const char *admin, int log)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* A daemon that keeps the directory would keep it from being unmounted. */
	if (null < 0 || chdir("/") < 0 || dup2(null, STDIN_FILENO) < 0 ||
		dup2(null, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(126);
	(void)close_range(STDERR_FILENO + 1, ~0u, 0);
	(void)execl(path, "rcclxd", "--private", "--once", "--socket", socket, "--admin-socket",
		admin, "--log-level", "warn", (char *)NULL);
	_exit(127);
}

static ncclResult_t start(uint64_t number, const char *socket, const char *log_path)
{
	const char *path = binary();
	char admin[PATH_BYTES];
	RX_CLOSE int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t child = 0;

	if (log < 0)
		return error_set(ncclSystemError, "RCCLX_AUTOSTART: cannot write %s: %m", log_path);
	if (access(path, X_OK) < 0)
		return error_set(ncclSystemError,
			"RCCLX_AUTOSTART: cannot execute %s: %m; set RCCLXD to the path of rcclxd",
			path);
	path_of(number, ".admin", admin, sizeof(admin));
	child = fork();
	if (child == 0) {
		if (setsid() < 0 || (child = fork()) < 0)
			_exit(1);
		if (child > 0)
			_exit(0);
		become_daemon(path, socket, admin, log);
	}
	if (child < 0)
		return error_set(ncclSystemError, "RCCLX_AUTOSTART: fork: %m");
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	debug_log(DEBUG_INFO, "started %s for this job, at %s", path, socket);
	return ncclSuccess;
}

/* Until @deadline_ns. A daemon that is about to end refuses us, and then is gone. */
static rcclx_result try_connect(const char *socket, const struct rcclx_connect_config *config,
	uint64_t deadline_ns, bool wait, struct rcclx_client **client_p)
{
	for (;;) {
		rcclx_result r = rcclx_connect(socket, config, client_p);
		bool retry = r == RCCLX_ERR_LIMIT || r == RCCLX_ERR_DAEMON_LOST ||
			     (wait && r == RCCLX_ERR_NO_DAEMON);

		if (!retry || rx_now_ns() >= deadline_ns)
			return r;
		(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
}

static ncclResult_t connect_locked(uint64_t number, const char *socket,
	const struct rcclx_connect_config *config, struct rcclx_client **client_p)
{
	uint64_t deadline_ns = rx_deadline_ns(ANSWER_NS);
	char log[PATH_BYTES];
	ncclResult_t r = ncclSuccess;
	rcclx_result connected = try_connect(socket, config, deadline_ns, false, client_p);

	if (connected != RCCLX_ERR_NO_DAEMON || !autostart_wanted())
		return error_of(connected, false);
	path_of(number, ".log", log, sizeof(log));
	r = start(number, socket, log);
	if (r != ncclSuccess)
		return r;
	connected = try_connect(socket, config, deadline_ns, true, client_p);
	if (connected == RCCLX_ERR_NO_DAEMON)
		return error_set(ncclSystemError,
			"RCCLX_AUTOSTART: %s did not answer at %s within %llu s; its log is %s",
			binary(), socket, (unsigned long long)(ANSWER_NS / RX_NS_PER_SEC), log);
	return error_of(connected, false);
}

/* Whoever holds it starts a daemon, and may be stopped while it does. */
static ncclResult_t lock_file(int lock, const char *path)
{
	uint64_t deadline_ns = rx_deadline_ns(LOCK_NS);

	while (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set(
				ncclSystemError, "RCCLX_AUTOSTART: cannot lock %s: %m", path);
		if (rx_now_ns() >= deadline_ns)
			return error_set(ncclSystemError,
				"RCCLX_AUTOSTART: another process of this job has held %s for %llu "
				"s; end it and try again",
				path, (unsigned long long)(LOCK_NS / RX_NS_PER_SEC));
		(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	return ncclSuccess;
}

ncclResult_t autostart_connect(const char *given, const struct rcclx_connect_config *config,
	struct rcclx_client **client_p, char socket_p[CONNECTION_SOCKET_BYTES])
{
	uint64_t number = given[0] ? number_of(given) : job_number();
	char lock_path[PATH_BYTES];
	ncclResult_t r = make_directory();

	if (r != ncclSuccess)
		return r;
	path_of(number, ".lock", lock_path, sizeof(lock_path));
	path_of(number, ".sock", socket_p, CONNECTION_SOCKET_BYTES);

	RX_CLOSE int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (lock < 0)
		return error_set(
			ncclSystemError, "RCCLX_AUTOSTART: cannot write %s: %m", lock_path);
	r = lock_file(lock, lock_path);
	return r != ncclSuccess ? r : connect_locked(number, socket_p, config, client_p);
}

void autostart_tag(ncclUniqueId *id, const char *socket)
{
	if (!socket[0])
		return;
	(void)snprintf(id->internal + TAG_AT, NCCL_UNIQUE_ID_BYTES - TAG_AT, TAG_MARK "%016" PRIx64,
		number_of(socket));
}

void autostart_untag(ncclUniqueId *id, char socket_p[CONNECTION_SOCKET_BYTES])
{
	char *tag = id->internal + TAG_AT;
	uint64_t number = 0;

	socket_p[0] = '\0';
	if (memcmp(tag, TAG_MARK, sizeof(TAG_MARK) - 1) != 0 ||
		tag[sizeof(TAG_MARK) - 1 + TAG_DIGITS] != '\0' ||
		sscanf(tag + sizeof(TAG_MARK) - 1, "%16" SCNx64, &number) != 1)
		return;
	path_of(number, ".sock", socket_p, CONNECTION_SOCKET_BYTES);
	memset(tag, 0, NCCL_UNIQUE_ID_BYTES - TAG_AT);
}

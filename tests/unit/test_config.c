/* SPDX-License-Identifier: MIT */
#include "../../daemon/config.h"

#include "../../shm/rx_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_defaults(void **state)
{
	struct config config;
	struct config_error error;

	(void)state;
	assert_int_equal(config_parse("", "x.conf", &config, &error), 0);
	assert_null(config.socket);
	assert_int_equal(config.log_level, RX_LOG_INFO);
	assert_int_equal(config.ring_entries, 256);
	assert_int_equal(config.host_workers, 1);
	assert_int_equal(config.form_timeout_ns, 60 * RX_NS_PER_SEC);
	assert_int_equal(config.stall_report_ns, RX_NS_PER_SEC);
	assert_int_equal(config.waiting.spin_us, 20);
	assert_int_equal(config.waiting.busy_poll_us, 0);
	assert_false(config.waiting.cpu_dma_latency);
	assert_false(config.gpu.inline_kernels);
	assert_int_equal(config.gpu.slab_bytes, 268435456);
	assert_int_equal(config.gpu.exchange_bytes, 512u << 20);
	assert_int_equal(config.gpu.slot_bytes, 256u << 10);
	assert_int_equal(config.gpu.barrier_timeout_ns, 30 * RX_NS_PER_SEC);
	assert_int_equal(config.limits.sessions_per_uid, 1024);
	assert_int_equal(config.limits.comms_per_uid, 4096);
	assert_int_equal(config.limits.regions_per_uid, 4096);
	assert_true(config.limits.bytes_per_uid >= 1u << 20);
	config_deinit(&config);
}

static void test_every_key(void **state)
{
	static const char text[] =
		"# all of it\n"
		"socket = \"/run/a.sock\";\n"
		"admin_socket = \"/run/b.sock\";\n"
		"tuning_dir = \"/etc/tunes\";\n"
		"log_level = \"debug\";\n"
		"ring_entries = 64;\n"
		"host_workers = 3;\n"
		"form_timeout_s = 5;\n"
		"stall_report_s = 2.5;\n"
		"limits = {\n"
		"  sessions_per_uid = 7;\n"
		"  comms_per_uid = 8;\n"
		"  regions_per_uid = 9;\n"
		"  bytes_per_uid = 1099511627776L;\n"
		"  ops_in_flight_per_session = 10;\n"
		"};\n"
		"waiting = {\n"
		"  spin_us = 0;\n"
		"  busy_poll_us = 100;\n"
		"  cpu_dma_latency = true;\n"
		"};\n"
		"gpu = { inline = true; slab_bytes = 8388608; exchange_bytes = 0;\n"
		"  slot_bytes = 16512; barrier_timeout_s = 0.5; };\n";
	struct config config;
	struct config_error error;

	(void)state;
	assert_int_equal(config_parse(text, "x.conf", &config, &error), 0);
	assert_string_equal(config.socket, "/run/a.sock");
	assert_string_equal(config.admin_socket, "/run/b.sock");
	assert_string_equal(config.tuning_dir, "/etc/tunes");
	assert_int_equal(config.log_level, RX_LOG_DEBUG);
	assert_int_equal(config.ring_entries, 64);
	assert_int_equal(config.host_workers, 3);
	assert_int_equal(config.form_timeout_ns, 5 * RX_NS_PER_SEC);
	assert_int_equal(config.stall_report_ns, 2500 * RX_NS_PER_MS);
	assert_int_equal(config.limits.sessions_per_uid, 7);
	assert_int_equal(config.limits.comms_per_uid, 8);
	assert_int_equal(config.limits.regions_per_uid, 9);
	assert_int_equal(config.limits.bytes_per_uid, 1099511627776);
	assert_int_equal(config.limits.ops_in_flight_per_session, 10);
	assert_int_equal(config.waiting.spin_us, 0);
	assert_int_equal(config.waiting.busy_poll_us, 100);
	assert_true(config.waiting.cpu_dma_latency);
	assert_true(config.gpu.inline_kernels);
	assert_int_equal(config.gpu.slab_bytes, 8388608);
	assert_int_equal(config.gpu.exchange_bytes, 0);
	assert_int_equal(config.gpu.slot_bytes, 16512);
	assert_int_equal(config.gpu.barrier_timeout_ns, 500 * RX_NS_PER_MS);
	config_deinit(&config);
}

/* Refused; the message names file, line and key, and the old values stay. */
static void refuse(const char *text, const char *where, const char *what)
{
	struct config config = {.ring_entries = 12345};
	struct config_error error = {""};

	assert_int_equal(config_parse(text, "x.conf", &config, &error), -EINVAL);
	if (strncmp(error.text, where, strlen(where)) != 0 || !strstr(error.text, what))
		print_error("%s\n", error.text);
	assert_memory_equal(error.text, where, strlen(where));
	assert_non_null(strstr(error.text, what));
	assert_int_equal(config.ring_entries, 12345);
	assert_null(config.socket);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("\nrings = 5;\n", "x.conf:2: rings: ", "unknown key");
	refuse("limits = { sessions = 5; };\n", "x.conf:1: sessions: ", "unknown key");
	refuse("limits = { limits = { }; };\n", "x.conf:1: limits: ", "unknown key");
	refuse("waiting = { limits = { }; };\n", "x.conf:1: limits: ", "unknown key");
	refuse("waiting = 3;\n", "x.conf:1: waiting: ", "expected a group");
	refuse("waiting = { cpu_dma_latency = 1; };\n",
		"x.conf:1: cpu_dma_latency: ", "expected true or false");
	refuse("waiting = { spin_us = -1; };\n", "x.conf:1: spin_us: ", "expected a number");
	refuse("gpu = { slot_bytes = 16256; };\n", "x.conf:1: slot_bytes: ", "16384");
	refuse("gpu = { slot_bytes = 16400; };\n", "x.conf:1: slot_bytes: ", "multiple of 128");
	refuse("limits = 5;\n", "x.conf:1: limits: ", "expected a group");
	refuse("ring_entries = \"64\";\n", "x.conf:1: ring_entries: ", "expected a whole number");
	refuse("ring_entries = 64.0;\n", "x.conf:1: ring_entries: ", "expected a whole number");
	refuse("ring_entries = 100;\n", "x.conf:1: ring_entries: ", "power of two");
	refuse("ring_entries = 0;\n", "x.conf:1: ring_entries: ", "from 2 to 4096, not 0");
	refuse("ring_entries = 8192;\n", "x.conf:1: ring_entries: ", "not 8192");
	refuse("host_workers = -1;\n", "x.conf:1: host_workers: ", "not -1");
	refuse("host_workers = 4294967297L;\n", "x.conf:1: host_workers: ", "not 4294967297");
	refuse("form_timeout_s = true;\n", "x.conf:1: form_timeout_s: ", "number of seconds");
	refuse("form_timeout_s = 0;\n", "x.conf:1: form_timeout_s: ", "not 0");
	refuse("stall_report_s = 1e99;\n", "x.conf:1: stall_report_s: ", "not 1e+99");
	refuse("log_level = \"loud\";\n", "x.conf:1: log_level: ", "\"debug\"");
	refuse("log_level = 3;\n", "x.conf:1: log_level: ", "\"debug\"");
	refuse("socket = \"run/a\";\n", "x.conf:1: socket: ", "absolute path");
	refuse("tuning_dir = \"tunes\";\n", "x.conf:1: tuning_dir: ", "absolute path");
	refuse("socket = 5;\n", "x.conf:1: socket: ", "expected a path");
	refuse("socket = \"/a\";\n\nadmin_socket = 1;\n", "x.conf:3: admin_socket: ", "path");
	refuse("socket = \"/a\n", "x.conf:", "syntax error");
	refuse("host_workers = 1;\nhost_workers = 2;\n", "x.conf:2", "duplicate");
	refuse("{", "x.conf:1", "syntax error");
	refuse("host_workers = 1;\n @include \"/etc\"\n", "x.conf:2: @include: ", "one file");
}

static void test_long_path(void **state)
{
	char text[400];

	(void)state;
	(void)snprintf(text, sizeof(text), "socket = \"/%0200d\";", 0);
	refuse(text, "x.conf:1: socket: ", "at most 107");
}

static void test_files(void **state)
{
	char path[] = "/tmp/rcclx-conf-XXXXXX";
	int fd = mkstemp(path);
	struct config config;
	struct config_error error;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "host_workers = 2;\n", 18), 18);
	assert_int_equal(config_load(path, true, &config, &error), 0);
	assert_int_equal(config.host_workers, 2);
	config_deinit(&config);
	assert_int_equal(write(fd, "bad\n", 4), 4);
	assert_int_equal(config_load(path, true, &config, &error), -EINVAL);
	assert_memory_equal(error.text, path, strlen(path));
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(config_load(path, true, &config, &error), -ENOENT);
	assert_non_null(strstr(error.text, "No such file"));
	assert_int_equal(config_load(path, false, &config, &error), 0);
	assert_int_equal(config.host_workers, 1);
	config_deinit(&config);
	/* A directory can be opened and not read. */
	assert_int_equal(config_load("/tmp", true, &config, &error), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "shm_region.h"

#include "../../shm/rx_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

static bool madvise_fails;

int __real_madvise(void *addr, size_t bytes, int advice);
int __wrap_madvise(void *addr, size_t bytes, int advice);

int __wrap_madvise(void *addr, size_t bytes, int advice)
{
	if (!madvise_fails)
		return __real_madvise(addr, bytes, advice);
	errno = ENOMEM;
	return -1;
}

static int new_fd(const char *name, uint64_t bytes)
{
	int fd = -1;

	assert_int_equal(rx_memfd_new(name, bytes, RX_MEMFD_SHARED, &fd), 0);
	return fd;
}

static void test_two_maps_share(void **state)
{
	struct rx_map rw = RX_MAP_INIT;
	struct rx_map ro = RX_MAP_INIT;
	int fd = new_fd("rx-map-two", 3 * PAGE);

	(void)state;
	assert_int_equal(rx_map_open(&rw, fd, 3 * PAGE, RX_MAP_RW), 0);
	assert_int_equal(rx_map_open(&ro, fd, 10, RX_MAP_RO), 0);
	assert_true(rw.writable);
	assert_false(ro.writable);
	assert_int_equal(rw.bytes, 3 * PAGE);
	assert_int_equal(ro.bytes, PAGE);
	strcpy(rw.addr, "over there");
	assert_string_equal(ro.addr, "over there");
	rx_map_close(&rw);
	rx_map_close(&ro);
	assert_null(rw.addr);
	rx_map_close(&rw);
	assert_int_equal(count_maps("rx-map-two"), 0);
	close(fd);
}

static void test_refuses(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = new_fd("rx-map-no", PAGE);

	(void)state;
	assert_int_equal(rx_map_open(&map, fd, 0, RX_MAP_RW), -EINVAL);
	assert_int_equal(rx_map_open(&map, fd, PAGE + 1, RX_MAP_RW), -ERANGE);
	assert_int_equal(rx_map_open(&map, fd, UINT64_MAX, RX_MAP_RW), -ERANGE);
	assert_int_equal(rx_map_open(&map, fd, UINT64_MAX - PAGE, RX_MAP_RW), -ERANGE);
	assert_int_equal(rx_map_open(&map, -1, PAGE, RX_MAP_RW), -EBADF);
	madvise_fails = true;
	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_DONTFORK), -ENOMEM);
	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_DONTDUMP), -ENOMEM);
	madvise_fails = false;
	assert_null(map.addr);
	assert_int_equal(map.bytes, 0);
	assert_int_equal(count_maps("rx-map-no"), 0);
	close(fd);
}

static void test_read_only_file(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	char path[64];
	int fd = new_fd("rx-map-ro", PAGE);
	int ro = -1;

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ro >= 0);
	assert_int_equal(rx_map_open(&map, ro, PAGE, RX_MAP_RW), -EACCES);
	assert_int_equal(rx_map_open(&map, ro, PAGE, RX_MAP_RO), 0);
	rx_map_close(&map);
	close(ro);
	close(fd);
}

static void test_file_ends_in_page(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = memfd_create("rx-map-odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE + 1), 0);
	assert_int_equal(rx_map_open(&map, fd, PAGE + 1, RX_MAP_RO), 0);
	assert_int_equal(map.bytes, 2 * PAGE);
	/* No SIGBUS up to the end of the last page. */
	assert_int_equal(((uint8_t *)map.addr)[2 * PAGE - 1], 0);
	rx_map_close(&map);
	close(fd);
}

static void test_at(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = new_fd("rx-map-at", PAGE);
	char *base = NULL;

	(void)state;
	assert_null(rx_map_at(&map, 0, 0));
	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_RW), 0);
	base = map.addr;
	assert_ptr_equal(rx_map_at(&map, 0, PAGE), base);
	assert_ptr_equal(rx_map_at(&map, PAGE - 1, 1), base + PAGE - 1);
	assert_ptr_equal(rx_map_at(&map, PAGE, 0), base + PAGE);
	assert_null(rx_map_at(&map, PAGE, 1));
	assert_null(rx_map_at(&map, 0, PAGE + 1));
	assert_null(rx_map_at(&map, 1, UINT64_MAX));
	assert_null(rx_map_at(&map, UINT64_MAX, 1));
	assert_null(rx_map_at(&map, UINT64_MAX, 0));
	rx_map_close(&map);
	close(fd);
}

static int child_write(void *arg)
{
	const struct rx_map *map = arg;

	*(char *)map->addr = 1;
	return 0;
}

static int child_read(void *arg)
{
	const struct rx_map *map = arg;

	return *(const char *)map->addr;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAULTS_HIDDEN true
#elif defined(__has_feature)
#define FAULTS_HIDDEN (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FAULTS_HIDDEN false
#endif

/* A sanitizer turns the signal into an exit status of its own. */
static void assert_faults(int verdict)
{
	if (FAULTS_HIDDEN)
		assert_true(verdict != 0);
	else
		assert_int_equal(verdict, 1000 + SIGSEGV);
}

static void test_faults(void **state)
{
	struct rx_map ro = RX_MAP_INIT;
	struct rx_map rw = RX_MAP_INIT;
	struct rx_map private = RX_MAP_INIT;
	int fd = new_fd("rx-map-fork", PAGE);

	(void)state;
	assert_int_equal(rx_map_open(&ro, fd, PAGE, RX_MAP_RO), 0);
	assert_int_equal(rx_map_open(&rw, fd, PAGE, RX_MAP_RW), 0);
	assert_int_equal(rx_map_open(&private, fd, PAGE, RX_MAP_DONTFORK), 0);
	assert_int_equal(child_run(child_read, &ro), 0);
	assert_faults(child_run(child_write, &ro));
	assert_int_equal(child_run(child_write, &rw), 0);
	assert_int_equal(child_run(child_read, &rw), 1);
	assert_faults(child_run(child_read, &private));
	assert_int_equal(*(const char *)private.addr, 1);
	rx_map_close(&ro);
	rx_map_close(&rw);
	rx_map_close(&private);
	close(fd);
}

/* Does the mapping of this name carry this VmFlags code? */
static bool has_vm_flag(const char *name, const char *flag)
{
	char line[512];
	bool inside = false;
	bool found = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, name))
			inside = true;
		if (inside && strncmp(line, "VmFlags:", 8) == 0) {
			found = strstr(line, flag) != NULL;
			break;
		}
	}
	(void)fclose(f);
	assert_true(inside);
	return found;
}

static void test_dontdump(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = new_fd("rx-map-dump", PAGE);

	(void)state;
	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_RO), 0);
	assert_false(has_vm_flag("rx-map-dump", " dd"));
	rx_map_close(&map);
	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_DONTDUMP), 0);
	assert_true(has_vm_flag("rx-map-dump", " dd"));
	rx_map_close(&map);
	close(fd);
}

static struct rx_map guarded(int fd, bool keep)
{
	RX_UNMAP struct rx_map map = RX_MAP_INIT;

	assert_int_equal(rx_map_open(&map, fd, PAGE, RX_MAP_RW), 0);
	return keep ? rx_steal_map(&map) : RX_MAP_INIT;
}

static void test_guards(void **state)
{
	unsigned int n_fds = count_fds();
	struct rx_map map = RX_MAP_INIT;

	(void)state;
	{
		RX_CLOSE int fd = new_fd("rx-map-guard", PAGE);
		RX_FREE char *text = strdup("owned");
		char *stolen = rx_steal(text);

		map = guarded(fd, false);
		assert_null(map.addr);
		assert_int_equal(count_maps("rx-map-guard"), 0);
		map = guarded(fd, true);
		assert_non_null(map.addr);
		assert_int_equal(count_maps("rx-map-guard"), 1);
		assert_null(text);
		assert_string_equal(stolen, "owned");
		free(stolen);
		errno = EDOM;
	}
	/* Guards keep errno. */
	assert_int_equal(errno, EDOM);
	rx_map_close(&map);
	assert_int_equal(errno, EDOM);
	assert_int_equal(count_fds(), n_fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_maps_share),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_read_only_file),
		cmocka_unit_test(test_file_ends_in_page),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_dontdump),
		cmocka_unit_test(test_guards),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

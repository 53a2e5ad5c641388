/* SPDX-License-Identifier: MIT */
#include "gpu_node.h"

#include "../../kernels/coll_types.h"
#include "../../shm/rx_base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char config_text[3000];
static char runtime_path[500];
static char fault_path[64];
static char fault_env[72];
static char tuning_dir[72];
static char gpu_config[2000];

bool gpu_fits_sanitizer(const char *family)
{
#if defined(__SANITIZE_THREAD__)
	(void)printf("skipped: kernels with a thread for each of the GPU's take %s too long here\n",
		family);
	return false;
#elif defined(__SANITIZE_ADDRESS__)
	if (strcmp(family, "hip") == 0)
		(void)printf(
			"skipped: the same source as for the other family, which is checked\n");
	return strcmp(family, "hip") != 0;
#else
	(void)family;
	return true;
#endif
}

static void write_config(const char *keys)
{
	(void)snprintf(config_text, sizeof(config_text),
		"stall_report_s = 20;\ntuning_dir = \"%s\";\ngpu = { %s %s };\n", tuning_dir,
		gpu_config, keys);
}

bool gpu_setup(const char *family)
{
	const char *builddir = getenv("RCCLX_BUILDDIR");
	char libs[400];

	if (!builddir || !gpu_fits_sanitizer(family))
		return false;
	(void)snprintf(libs, sizeof(libs), "%s/.libs", builddir);
	(void)snprintf(runtime_path, sizeof(runtime_path), "%s/gpu_emu_%s.so", libs, family);
	/* The double takes any file for code. */
	(void)snprintf(gpu_config, sizeof(gpu_config),
		"backend = \"%s\"; dir = \"%s\"; library = \"%s\"; code = \"%s\";", family, libs,
		runtime_path, runtime_path);
	(void)snprintf(tuning_dir, sizeof(tuning_dir), "/tmp/rx-gpu-tuning-%d", getpid());
	write_config("");
	(void)snprintf(fault_path, sizeof(fault_path), "/tmp/rx-gpu-faults-%d", getpid());
	(void)snprintf(fault_env, sizeof(fault_env), "@%s", fault_path);
	(void)mkdir(tuning_dir, 0700);
	return setenv("RCCLX_BACKEND_DIR", libs, 1) == 0 &&
	       setenv("RCCLX_GPU_CODE", runtime_path, 1) == 0;
}

void gpu_configure(const char *thresholds, const char *keys)
{
	static const uint32_t classes[] = {2, 4, 8, 16, 64};
	char path[100];
	FILE *out = NULL;

	write_config(keys);
	(void)mkdir(tuning_dir, 0700);
	(void)snprintf(path, sizeof(path), "%s/forced.conf", tuning_dir);
	out = fopen(path, "we");
	assert_non_null(out);
	(void)fprintf(out, "default = {\n");
	for (size_t i = 0; i < RX_ARRAY_SIZE(classes); i++)
		(void)fprintf(out, "\tranks_%u = { %s };\n", classes[i], thresholds);
	(void)fprintf(out, "};\n");
	assert_int_equal(fclose(out), 0);
}

void gpu_cleanup(void)
{
	char path[100];

	(void)snprintf(path, sizeof(path), "%s/forced.conf", tuning_dir);
	(void)unlink(path);
	(void)rmdir(tuning_dir);
	(void)unlink(fault_path);
}

void gpu_faults(const char *faults)
{
	char path[80];
	FILE *out = NULL;

	(void)snprintf(path, sizeof(path), "%s.new", fault_path);
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fprintf(out, "%s\n", faults ? faults : "") > 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(path, fault_path), 0);
}

struct node *gpu_node_cold(const char *faults)
{
	gpu_faults(faults);
	return node_start(&(struct node_options){
		.config = config_text, .env_name = "RX_GPU_EMU", .env_value = fault_env});
}

static int rank_first(struct rank_ctx *ctx)
{
	const struct coll_case what = {.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.count = 1000,
		.memory = COLL_DEVICE};
	struct coll_rank c;

	RANK_DO(gpu_open_rank(&c, ctx, 0, 8192));
	RANK_DO(coll_run(&c, &what));
	return gpu_close_rank(&c);
}

/* Devices stay open. */
struct node *gpu_node(const char *always, const char *then)
{
	struct node *node = gpu_node_cold(always);

	world_run(node, 1, rank_first, NULL);
	node_use_is_fine(node);
	gpu_faults(then ? then : always);
	return node;
}

/* ---- what rcclxctl says ---- */

static void ask(
	const struct node *node, const char *options, const char *what, char *text, size_t bytes)
{
	char command[600];
	FILE *out = NULL;
	size_t n = 0;

	(void)snprintf(command, sizeof(command), "%s/client/ctl/rcclxctl --socket %s %s %s",
		getenv("RCCLX_BUILDDIR"), node->admin, options, what);
	out = popen(command, "re");
	assert_non_null(out);
	n = fread(text, 1, bytes - 1, out);
	text[n] = '\0';
	assert_int_equal(pclose(out), 0);
}

static void expect(const struct node *node, const char *options, const char *what, const char *part)
{
	char text[16384] = "";

	/* What goes is given back a little later. */
	for (uint32_t i = 0; i < 100; i++) {
		ask(node, options, what, text, sizeof(text));
		if (strstr(text, part))
			return;
		test_sleep_ms(20);
	}
	fail_msg("no \"%s\" in what rcclxctl %s %s says:\n%s", part, options, what, text);
}

void gpu_expect(const struct node *node, const char *options, const char *part)
{
	expect(node, options, "devices", part);
}

void gpu_expect_status(const struct node *node, const char *options, const char *part)
{
	expect(node, options, "status", part);
}

unsigned long gpu_count(const struct node *node, uint32_t device, const char *key)
{
	char text[16384] = "";
	char label[80];
	const char *at = text;

	ask(node, "--json", "devices", text, sizeof(text));
	(void)snprintf(label, sizeof(label), "\"%s\": ", key);
	for (uint32_t i = 0; i <= device && at; i++)
		at = strstr(at + 1, label);
	assert_non_null(at);
	return strtoul(at + strlen(label), NULL, 10);
}

/* ---- in ranks ---- */

const struct emu_user *gpu_user(void)
{
	void *runtime = dlopen(runtime_path, RTLD_NOW | RTLD_GLOBAL);

	return runtime ? dlsym(runtime, EMU_USER_SYMBOL) : NULL;
}

static uint64_t memory_bytes(const struct coll_rank *c)
{
	return rx_align_up(2 * c->bytes, 4096);
}

int gpu_give_memory(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	const struct emu_user *user = gpu_user();

	RANK_CHECK(ctx, user, "no runtime: %s", dlerror());
	c->device = (struct coll_device){
		.address = ctx->rank % 2 ? user->alloc(device, memory_bytes(c))
					 : user->alloc_pieces(device, memory_bytes(c), 1),
		.write = user->write,
		.read = user->read,
	};
	RANK_CHECK(ctx, c->device.address, "no device memory");
	return 0;
}

int gpu_take_memory(struct coll_rank *c)
{
	struct rank_ctx *ctx = c->ctx;
	const struct emu_user *user = gpu_user();
	int native = ctx->rank % 2 ? user->free(c->device.address)
				   : user->free_pieces(c->device.address, memory_bytes(c), 1);

	RANK_CHECK(ctx, native == 0, "memory cannot be freed: %d", native);
	return 0;
}

static void *stream;
static uint32_t replays;

/* Of the user's own calls: the test is wrong, or the runtime has been harmed. */
static void must(int native, const char *what)
{
	if (native == 0)
		return;
	(void)fprintf(stderr, "%s: the runtime says %d\n", what, native);
	abort();
}

static rcclx_result make_in_stream(rcclx_result (*make)(void *arg), void *arg)
{
	void *graph = NULL;
	rcclx_result r = RCCLX_OK;

	if (replays == 0)
		return make(arg);
	must(gpu_user()->capture_begin(stream, 0), "beginning a capture");
	r = make(arg);
	must(gpu_user()->capture_end(stream, &graph), "ending a capture");
	for (uint32_t i = 0; i < replays && r == RCCLX_OK; i++)
		must(gpu_user()->graph_launch(graph, stream), "replaying");
	gpu_user()->graph_free(graph);
	return r;
}

static void read_after_stream(void *to, uint64_t from, uint64_t bytes)
{
	must(gpu_user()->stream_sync(stream), "waiting for the stream");
	gpu_user()->read(to, from, bytes);
}

int gpu_in_stream(struct coll_rank *c, uint32_t device, uint32_t n_replays)
{
	/* The gates and what wakes their thread, and staged memory of graphs. */
	c->ctx->n_kept_fds = UINT32_MAX;
	replays = n_replays;
	stream = gpu_user()->stream_new(device);
	RANK_CHECK(c->ctx, stream, "no stream");
	c->device.around = make_in_stream;
	c->device.stream = stream;
	c->device.read = read_after_stream;
	return 0;
}

int gpu_out_of_stream(struct coll_rank *c)
{
	RANK_CHECK(c->ctx, gpu_user()->stream_sync(stream) == 0, "the stream failed");
	RANK_CHECK(c->ctx, gpu_user()->stream_free(stream) == 0, "the stream cannot be freed");
	c->device.around = NULL;
	c->device.stream = NULL;
	c->device.read = gpu_user()->read;
	return 0;
}

int gpu_open_rank(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device, uint64_t bytes)
{
	RANK_CHECK(ctx, gpu_user(), "no runtime: %s", dlerror());
	RANK_DO(coll_open(c, ctx, bytes));
	return gpu_give_memory(c, ctx, device);
}

int gpu_close_rank(struct coll_rank *c)
{
	RANK_DO(gpu_take_memory(c));
	return coll_close(c);
}

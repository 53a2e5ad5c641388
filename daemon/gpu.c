/* SPDX-License-Identifier: MIT */
/*
 * Jobs to do, jobs that devices work on, jobs done. The lock is held for list operations and for
 * copies of what people look at, never while a backend is called.
 *
 * Looking at a device costs a microsecond and waking up costs fifty, so the worker looks often at
 * first and then ever more rarely; with nothing to look at it sleeps. Graphs that were recorded can
 * be replayed at any time without a word to us: as long as there are any, it looks at their bells
 * at least once in LATE_NS.
 *
 * Devices are opened when the first client brings memory of theirs: a context takes device memory,
 * which a daemon that serves hosts only should not.
 */
#include "gpu.h"

#include "config.h"
#include "gpu_bells.h"
#include "gpu_exchange.h"
#include "gpu_words.h"
#include "../kernels/backend_load.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define BACKENDS_MAX 2u
#define EAGER_NS     (200 * 1000)         /* since something happened: no sleep between looks */
#define LOOK_NS      (20 * 1000)          /* then, at running jobs and at bells */
#define PATIENT_NS   (20 * RX_NS_PER_MS)  /* since something happened: more rarely */
#define RARE_NS      (100 * 1000)         /* then */
#define ASLEEP_NS    (1 * RX_NS_PER_SEC)  /* since something happened: only bells are left */
#define BELL_NS      (1 * RX_NS_PER_MS)   /* then */
#define FORGOTTEN_NS (10 * RX_NS_PER_SEC) /* since something happened */
#define LATE_NS      (5 * RX_NS_PER_MS)   /* then */
#define REAP_NS      (5 * RX_NS_PER_MS)   /* at what is in quarantine */
#define GIVE_UP_NS   (1 * RX_NS_PER_SEC)  /* after gpu_give_up() */

struct device {
	struct rx_gpu_device_info info;
	uint64_t peers;
	struct rx_gpu_device *opened; /* worker */
	bool tried;                   /* worker: to open it */
	struct gpu_device_view view;  /* under the lock */
};

struct gpu {
	uv_async_t async;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct rx_list todo;
	struct rx_list done;
	_Atomic uint32_t n_done; /* of done: changed under the lock */
	bool watched;            /* the loop thread looks at n_done */
	bool stopping;
	uint64_t give_up_ns; /* under the lock; RX_FOREVER: not yet */
	pthread_t thread;
	bool started;
	uint32_t n_jobs;         /* loop thread: submitted and not handed back */
	struct rx_list running;  /* worker */
	bool may_reap;           /* worker */
	struct gpu_bells *bells; /* worker */
	uint64_t event_ns;       /* worker: when something has happened last */
	struct gpu_words *words; /* worker */
	struct gpu_exchange *exchange;
	uint64_t stage_bytes; /* never changes */

	enum gpu_state state; /* loop thread, as the reason */
	char reason[RX_BACKEND_WHY];
	const struct rx_backend_v1 *candidates[BACKENDS_MAX];
	uint32_t n_candidates;
	char *library;
	char *code;

	/* Written by the job that looks for devices, before the state says so. */
	struct gpu_job look;
	char look_reason[RX_BACKEND_WHY];
	const struct rx_backend_v1 *ops;
	struct rx_gpu *runtime;
	uint32_t n_devices;
	struct device *devices;
};

/* ---- the thread ---- */

static struct gpu_job *job_of(struct rx_list *link)
{
	return rx_list_entry(link, struct gpu_job, link);
}

static void hand_back(struct gpu *gpu, struct gpu_job *job)
{
	bool watched = false;

	pthread_mutex_lock(&gpu->lock);
	rx_list_push(&gpu->done, &job->link);
	atomic_fetch_add_explicit(&gpu->n_done, 1, memory_order_relaxed);
	watched = gpu->watched;
	pthread_mutex_unlock(&gpu->lock);
	if (!watched)
		(void)uv_async_send(&gpu->async);
}

/* True when a job has ended. */
static bool look_at_running(struct gpu *gpu, bool give_up)
{
	bool ended = false;

	rx_list_for_each_safe (pos, &gpu->running) {
		struct gpu_job *job = job_of(pos);

		if (!job->poll(job, gpu, give_up))
			continue;
		rx_list_unlink(pos);
		if (job->done)
			hand_back(gpu, job);
		ended = true;
	}
	return ended;
}

static void reap(struct gpu *gpu)
{
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < gpu->n_devices; i++) {
		if (!gpu->devices[i].opened)
			continue;
		n_left += gpu->ops->device_reap(gpu->devices[i].opened);
		gpu_note(gpu, i, NULL);
	}
	gpu->may_reap = n_left > 0;
}

/* With the lock held. */
static void sleep_until(struct gpu *gpu, uint64_t ns)
{
	struct timespec when;
	uint64_t at = 0;

	if (ns == RX_FOREVER) {
		pthread_cond_wait(&gpu->wanted, &gpu->lock);
		return;
	}
	at = rx_now_ns() + ns;
	when.tv_sec = (time_t)(at / RX_NS_PER_SEC);
	when.tv_nsec = (long)(at % RX_NS_PER_SEC);
	(void)pthread_cond_timedwait(&gpu->wanted, &gpu->lock, &when);
}

/* How long to sleep before the next look; RX_FOREVER: until there is a job. */
static uint64_t patience(const struct gpu *gpu)
{
	uint64_t calm_ns = rx_now_ns() - gpu->event_ns;
	bool runs = !rx_list_empty(&gpu->running);

	if (calm_ns < EAGER_NS)
		return 0;
	if (runs || gpu_bells_any(gpu->bells)) {
		if (calm_ns < PATIENT_NS)
			return LOOK_NS;
		if (runs || calm_ns < ASLEEP_NS)
			return RARE_NS;
		return calm_ns < FORGOTTEN_NS ? BELL_NS : LATE_NS;
	}
	return gpu->may_reap ? REAP_NS : RX_FOREVER;
}

/* The next job, or NULL when there are others to look at. False: the end. */
static bool next_job(struct gpu *gpu, struct gpu_job **job_p, bool *give_up_p)
{
	bool goes_on = true;

	*job_p = NULL;
	pthread_mutex_lock(&gpu->lock);
	if (rx_list_empty(&gpu->todo)) {
		uint64_t ns = patience(gpu);

		goes_on = !gpu->stopping || !rx_list_empty(&gpu->running);
		if (goes_on && ns > 0)
			sleep_until(gpu, ns);
	}
	if (!rx_list_empty(&gpu->todo)) {
		*job_p = job_of(gpu->todo.next);
		rx_list_unlink(&(*job_p)->link);
	}
	*give_up_p = rx_now_ns() >= gpu->give_up_ns;
	pthread_mutex_unlock(&gpu->lock);
	return goes_on;
}

static void *worker(void *arg)
{
	struct gpu *gpu = arg;
	struct gpu_job *job = NULL;
	bool give_up = false;

	/* Sleeps of microseconds are meant. Fails nowhere. */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	while (next_job(gpu, &job, &give_up)) {
		bool event = job != NULL;

		if (job) {
			if (job->run(job, gpu))
				hand_back(gpu, job);
			else
				rx_list_push(&gpu->running, &job->link);
		}
		event |= gpu_bells_look(gpu->bells, &gpu->running);
		event |= look_at_running(gpu, give_up);
		if (event)
			gpu->event_ns = rx_now_ns();
		else if (rx_list_empty(&gpu->running) && gpu->may_reap &&
			 rx_now_ns() - gpu->event_ns >= REAP_NS)
			reap(gpu);
		else
			(void)sched_yield();
	}
	return NULL;
}

/* ---- looking for devices: in the worker ---- */

static int read_device(struct gpu *gpu, uint32_t i, struct rx_gpu_error *error)
{
	struct device *device = &gpu->devices[i];
	int r = gpu->ops->device_info(gpu->runtime, i, &device->info, error);

	device->info.name[sizeof(device->info.name) - 1] = '\0';
	device->info.arch[sizeof(device->info.arch) - 1] = '\0';
	device->info.pci[sizeof(device->info.pci) - 1] = '\0';
	device->peers = 1ull << i;
	for (uint32_t to = 0; to < gpu->n_devices && r == 0; to++) {
		struct rx_gpu_peer peer = {0};

		r = to == i ? 0 : gpu->ops->peer(gpu->runtime, i, to, &peer, error);
		if (r == 0 && peer.access)
			device->peers |= 1ull << to;
	}
	return r;
}

static int read_devices(struct gpu *gpu, struct rx_gpu_error *error)
{
	uint32_t n = gpu->ops->device_count(gpu->runtime);
	int r = 0;

	gpu->n_devices = n < RX_GPU_DEVICES_MAX ? n : RX_GPU_DEVICES_MAX;
	gpu->devices = calloc(gpu->n_devices, sizeof(*gpu->devices));
	if (!gpu->devices) {
		gpu->n_devices = 0;
		(void)snprintf(error->text, sizeof(error->text), "out of memory");
		return RX_GPU_E_MEMORY;
	}
	for (uint32_t i = 0; i < gpu->n_devices && r == 0; i++)
		r = read_device(gpu, i, error);
	return r;
}

static void close_runtime(struct gpu *gpu)
{
	gpu->ops->close(gpu->runtime);
	gpu->runtime = NULL;
	gpu->ops = NULL;
	free(gpu->devices);
	gpu->devices = NULL;
	gpu->n_devices = 0;
}

static bool look_for_devices(struct gpu_job *job, struct gpu *gpu)
{
	struct rx_gpu_config config = {
		.size = sizeof(config),
		.library = gpu->library,
		.code_file = gpu->code,
	};

	(void)job;
	gpu->look_reason[0] = '\0';
	for (uint32_t i = 0; i < gpu->n_candidates && !gpu->ops; i++) {
		struct rx_gpu_error error = {0};
		size_t used = strlen(gpu->look_reason);
		int r = 0;

		gpu->ops = gpu->candidates[i];
		r = gpu->ops->open(&config, &gpu->runtime, &error);
		if (r == 0) {
			r = read_devices(gpu, &error);
			if (r)
				close_runtime(gpu);
		}
		if (r == 0)
			break;
		(void)snprintf(gpu->look_reason + used, sizeof(gpu->look_reason) - used, "%s%s: %s",
			used ? "; " : "", gpu->candidates[i]->name, error.text);
		gpu->ops = NULL;
	}
	return true;
}

static void on_looked(struct gpu_job *job)
{
	struct gpu *gpu = rx_container_of(job, struct gpu, look);

	gpu->state = gpu->ops ? GPU_READY : GPU_ABSENT;
	(void)snprintf(gpu->reason, sizeof(gpu->reason), "%s", gpu->look_reason);
	if (!gpu->ops)
		rx_info("no GPU is used: %s", gpu->reason);
	else
		rx_info("backend=%s devices=%u first=\"%s\" GPUs are served", gpu->ops->name,
			gpu->n_devices, gpu->n_devices ? gpu->devices[0].info.name : "");
}

/* ---- devices: in the worker ---- */

const struct rx_backend_v1 *gpu_ops(const struct gpu *gpu)
{
	return gpu->ops;
}

struct rx_gpu *gpu_runtime(const struct gpu *gpu)
{
	return gpu->runtime;
}

struct gpu_words *gpu_words(const struct gpu *gpu)
{
	return gpu->words;
}

struct gpu_exchange *gpu_exchange(const struct gpu *gpu)
{
	return gpu->exchange;
}

struct rx_gpu_device *gpu_opened(const struct gpu *gpu, uint32_t device)
{
	return gpu->devices[device].opened;
}

struct rx_gpu_device *gpu_open(struct gpu *gpu, uint32_t index)
{
	struct device *device = &gpu->devices[index];
	struct rx_gpu_error error = {0};
	int r = 0;

	if (device->tried)
		return device->opened;
	device->tried = true;
	r = gpu->ops->device_open(gpu->runtime, index, &device->opened, &error);
	if (r) {
		device->opened = NULL;
		gpu_note(gpu, index, &error);
	} else {
		gpu_note(gpu, index, NULL);
	}
	return device->opened;
}

/* Texts travel to people's terminals. */
static void copy_text(char *to, size_t bytes, const char *from)
{
	size_t i = 0;

	for (; i + 1 < bytes && from[i]; i++)
		to[i] = from[i] < 0x20 || from[i] > 0x7e ? '?' : from[i];
	to[i] = '\0';
}

void gpu_note(struct gpu *gpu, uint32_t index, const struct rx_gpu_error *error)
{
	struct device *device = &gpu->devices[index];
	struct gpu_device_view view = {.state = device->opened ? GPU_OPEN : GPU_CLOSED};
	struct rx_gpu_error own = {0};
	bool told = error;
	bool news = false;

	if (device->opened) {
		gpu->ops->device_stats(device->opened, &view.stats);
		if (gpu->ops->device_state(device->opened, &own)) {
			view.state = GPU_FAILED;
			error = &own;
		}
	} else if (device->tried) {
		view.state = GPU_FAILED;
	}
	pthread_mutex_lock(&gpu->lock);
	view.n_ops = device->view.n_ops;
	view.n_op_bytes = device->view.n_op_bytes;
	view.n_staged = device->view.n_staged;
	view.n_failures = device->view.n_failures + told;
	news = error && view.state == GPU_FAILED && device->view.state != GPU_FAILED;
	memcpy(view.error, device->view.error, sizeof(view.error));
	if (error)
		copy_text(view.error, sizeof(view.error), error->text);
	device->view = view;
	pthread_mutex_unlock(&gpu->lock);
	if (news)
		rx_err("device=%u name=\"%s\" is not used any more: %s", index, device->info.name,
			view.error);
}

void gpu_count(struct gpu *gpu, uint32_t device, uint64_t bytes, bool staged)
{
	struct gpu_device_view *view = &gpu->devices[device].view;

	pthread_mutex_lock(&gpu->lock);
	view->n_ops++;
	view->n_op_bytes += bytes;
	view->n_staged += staged;
	pthread_mutex_unlock(&gpu->lock);
	gpu_note(gpu, device, NULL);
}

uint64_t gpu_stage_bytes(const struct gpu *gpu)
{
	return gpu->stage_bytes;
}

struct gpu_bells *gpu_bells(const struct gpu *gpu)
{
	return gpu->bells;
}

void gpu_begin(struct gpu *gpu, struct gpu_job *job)
{
	rx_list_push(&gpu->running, &job->link);
}

bool gpu_is_quiet(const struct gpu *gpu)
{
	rx_list_for_each (pos, &gpu->running)
		if (!job_of(pos)->waits)
			return false;
	return true;
}

void gpu_tell(struct gpu *gpu, struct gpu_job *job)
{
	job->unasked = true;
	hand_back(gpu, job);
}

void gpu_reap_later(struct gpu *gpu)
{
	gpu->may_reap = true;
}

/* ---- life ---- */

bool gpu_take_done(struct gpu *gpu)
{
	struct rx_list done;

	/* The lock orders what comes with a job. */
	if (atomic_load_explicit(&gpu->n_done, memory_order_relaxed) == 0)
		return false;

	rx_list_init(&done);
	pthread_mutex_lock(&gpu->lock);
	while (!rx_list_empty(&gpu->done)) {
		struct rx_list *link = gpu->done.next;

		rx_list_unlink(link);
		rx_list_push(&done, link);
	}
	atomic_store_explicit(&gpu->n_done, 0, memory_order_relaxed);
	pthread_mutex_unlock(&gpu->lock);
	while (!rx_list_empty(&done)) {
		struct gpu_job *job = job_of(done.next);

		rx_list_unlink(&job->link);
		gpu->n_jobs -= !job->unasked;
		job->done(job);
	}
	return true;
}

static void on_done(uv_async_t *async)
{
	(void)gpu_take_done(rx_container_of(async, struct gpu, async));
}

static void on_closed(uv_handle_t *handle)
{
	struct gpu *gpu = rx_container_of((uv_async_t *)handle, struct gpu, async);

	(void)pthread_cond_destroy(&gpu->wanted);
	(void)pthread_mutex_destroy(&gpu->lock);
	free(gpu->library);
	free(gpu->code);
	free(gpu->devices);
	free(gpu);
}

/* Signals are for the loop thread. */
static int start(struct gpu *gpu)
{
	sigset_t all;
	sigset_t before;
	int r = 0;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&gpu->thread, NULL, worker, gpu);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	gpu->started = r == 0;
	return r;
}

static void load(struct gpu *gpu, const struct config *config)
{
	static const char *const automatic[BACKENDS_MAX] = {"hip", "cuda"};
	const char *wanted = config->gpu.backend ? config->gpu.backend : "auto";
	const char *dir = config->gpu.dir ? config->gpu.dir : PKGLIBDIR;

	gpu->state = GPU_OFF;
	if (strcmp(wanted, "none") == 0) {
		(void)snprintf(gpu->reason, sizeof(gpu->reason),
			"the configuration says gpu.backend = \"none\"");
		return;
	}
	for (uint32_t i = 0; i < BACKENDS_MAX; i++) {
		const char *name = strcmp(wanted, "auto") == 0 ? automatic[i] : wanted;
		const struct rx_backend_v1 *ops = NULL;
		int r = rx_backend_load(dir, name, &ops, gpu->reason);

		if (r == 0)
			gpu->candidates[gpu->n_candidates++] = ops;
		else if (r == RX_BACKEND_E_BAD || name == wanted)
			rx_warn("%s", gpu->reason);
		if (name == wanted)
			break;
	}
	if (gpu->n_candidates == 0)
		rx_info("no GPU is used: %s", gpu->reason);
}

int gpu_new(uv_loop_t *loop, const struct config *config, struct gpu **gpu_p)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));
	pthread_condattr_t attr;
	int r = 0;

	if (!gpu)
		return -ENOMEM;
	rx_list_init(&gpu->todo);
	rx_list_init(&gpu->done);
	rx_list_init(&gpu->running);
	gpu->give_up_ns = RX_FOREVER;
	(void)pthread_mutex_init(&gpu->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&gpu->wanted, &attr);
	(void)pthread_condattr_destroy(&attr);
	r = uv_async_init(loop, &gpu->async, on_done);
	if (r) {
		on_closed((uv_handle_t *)&gpu->async);
		return r;
	}
	gpu->stage_bytes = config->gpu.stage_bytes;
	load(gpu, config);
	if (config->gpu.library)
		gpu->library = strdup(config->gpu.library);
	if (config->gpu.code)
		gpu->code = strdup(config->gpu.code);
	if ((config->gpu.library && !gpu->library) || (config->gpu.code && !gpu->code))
		r = -ENOMEM;
	if (!r && gpu->n_candidates > 0) {
		gpu->words = gpu_words_new();
		gpu->bells = gpu_bells_new();
		gpu->exchange = gpu_exchange_new(config);
		r = gpu->words && gpu->bells && gpu->exchange ? start(gpu) : -ENOMEM;
	}
	if (r) {
		(void)gpu_free(gpu);
		return r;
	}
	if (gpu->started) {
		gpu->state = GPU_LOOKING;
		gpu->look.run = look_for_devices;
		gpu->look.done = on_looked;
		gpu_submit(gpu, &gpu->look);
	}
	*gpu_p = gpu;
	return 0;
}

/* What still works is left to the end of the process. */
static void close_devices(struct gpu *gpu)
{
	bool busy = false;

	for (uint32_t i = 0; i < gpu->n_devices; i++) {
		if (gpu->devices[i].opened)
			busy |= gpu->ops->device_close(gpu->devices[i].opened) == RX_GPU_BUSY;
	}
	gpu->words = gpu_words_free(gpu->words, busy || !gpu->ops ? NULL : gpu);
	if (gpu->ops && !busy)
		gpu->ops->close(gpu->runtime);
}

struct gpu *gpu_free(struct gpu *gpu)
{
	if (!gpu)
		return NULL;
	assert(gpu->n_jobs == 0);
	if (gpu->started) {
		pthread_mutex_lock(&gpu->lock);
		gpu->stopping = true;
		pthread_cond_signal(&gpu->wanted);
		pthread_mutex_unlock(&gpu->lock);
		(void)pthread_join(gpu->thread, NULL);
		close_devices(gpu);
	}
	gpu->words = gpu_words_free(gpu->words, NULL);
	gpu->bells = gpu_bells_free(gpu->bells);
	gpu->exchange = gpu_exchange_free(gpu->exchange);
	uv_close((uv_handle_t *)&gpu->async, on_closed);
	return NULL;
}

void gpu_give_up(struct gpu *gpu)
{
	pthread_mutex_lock(&gpu->lock);
	gpu->give_up_ns = rx_deadline_ns(GIVE_UP_NS);
	pthread_mutex_unlock(&gpu->lock);
}

bool gpu_is_idle(const struct gpu *gpu)
{
	return gpu->n_jobs == 0;
}

/* ---- in the loop thread ---- */

void gpu_watch(struct gpu *gpu, bool watched)
{
	pthread_mutex_lock(&gpu->lock);
	gpu->watched = watched;
	pthread_mutex_unlock(&gpu->lock);
	/* Nobody was woken for what has come meanwhile. */
	if (!watched && atomic_load_explicit(&gpu->n_done, memory_order_relaxed) > 0)
		(void)uv_async_send(&gpu->async);
}

void gpu_submit(struct gpu *gpu, struct gpu_job *job)
{
	assert(gpu->started);
	rx_list_init(&job->link);
	gpu->n_jobs++;
	pthread_mutex_lock(&gpu->lock);
	rx_list_push(&gpu->todo, &job->link);
	pthread_cond_signal(&gpu->wanted);
	pthread_mutex_unlock(&gpu->lock);
}

enum gpu_state gpu_state(const struct gpu *gpu)
{
	return gpu->state;
}

const char *gpu_state_name(enum gpu_state state)
{
	static const char *const names[_GPU_STATE_N] = {
		[GPU_OFF] = "off",
		[GPU_LOOKING] = "looking",
		[GPU_ABSENT] = "absent",
		[GPU_READY] = "ready",
	};

	return names[state];
}

const char *gpu_reason(const struct gpu *gpu)
{
	return gpu->reason;
}

const char *gpu_backend_name(const struct gpu *gpu)
{
	return gpu->state == GPU_READY ? gpu->ops->name : "";
}

/* ---- once it is ready ---- */

uint32_t gpu_n_devices(const struct gpu *gpu)
{
	return gpu->n_devices;
}

uint32_t gpu_find(const struct gpu *gpu, const uint8_t uuid[RX_GPU_UUID_BYTES])
{
	for (uint32_t i = 0; i < gpu->n_devices; i++)
		if (memcmp(gpu->devices[i].info.uuid, uuid, RX_GPU_UUID_BYTES) == 0)
			return i;
	return UINT32_MAX;
}

const struct rx_gpu_device_info *gpu_info(const struct gpu *gpu, uint32_t device)
{
	return &gpu->devices[device].info;
}

uint64_t gpu_peers(const struct gpu *gpu, uint32_t device)
{
	return gpu->devices[device].peers;
}

void gpu_view(struct gpu *gpu, uint32_t device, struct gpu_device_view *view_p)
{
	pthread_mutex_lock(&gpu->lock);
	*view_p = gpu->devices[device].view;
	pthread_mutex_unlock(&gpu->lock);
}

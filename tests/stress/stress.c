/* SPDX-License-Identifier: MIT */
/*
 * Random work by many processes on one daemon while members are killed, stopped, continued and
 * replaced. Every call of a survivor has to end in time, with the oracle's result or with an error
 * that what has been done to its team explains; at the end the daemon is there and has given all
 * back.
 *
 * RCCLX_STRESS_SECONDS: how long, 60 by default. RCCLX_STRESS_SEED: what the members do and what
 * is done to them; when exactly it is done depends on the machine.
 */
#include "stress.h"
#include "../integration/harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SECONDS 60u
/* The issue asks for one second; the rest is for eight processes that share two cores. */
#define AFTER_LOSS_MS 2500u
#define FINISH_MS     15000u

struct director {
	struct stress_shared *shared;
	struct node *node;
	pid_t pids[N_MEMBERS];
	uint64_t stopped_until_ms[N_MEMBERS]; /* 0: runs */
	bool killed[N_MEMBERS];               /* and not yet collected */
	uint64_t next_disturbance_ms;
	struct dice dice;
	uint64_t n_teams;
	uint64_t n_kills;
	uint64_t n_stops;
	uint64_t n_exits;
};

/* Static: a failing test jumps out of its stack frame, its members still have to be ended. */
static struct director director;

/* ---- processes ---- */

static void start_member(struct director *d, uint32_t index)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		(void)close(d->node->lifeline);
		int r = member_run(d->shared, index, d->node->socket);
		(void)fflush(NULL);
		_exit(r);
	}
	d->pids[index] = pid;
	d->killed[index] = false;
	d->stopped_until_ms[index] = 0;
}

static struct team *team_of(const struct director *d, uint32_t index)
{
	uint32_t job = atomic_load(&d->shared->slots[index].job);

	return job == 0 ? NULL : &d->shared->teams[job - 1];
}

/* Tells the watchdog, and those who judge results, before it happens. */
static void note(const struct director *d, uint32_t index, uint32_t trouble)
{
	struct team *team = team_of(d, index);

	if (team == NULL)
		return;
	atomic_fetch_or(&team->trouble, trouble);
	atomic_store(&team->since_ms, test_now_ms());
}

static void judge_end(struct director *d, uint32_t index, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && d->killed[index])
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ABRUPT) {
		d->n_exits++;
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&d->shared->stop) != 0)
		return;
	fail_msg("member %u ended with status 0x%x: %s", index, (unsigned int)status,
		d->shared->world.reasons[index]);
}

/* Returns how many still run; the others are replaced unless it is over. */
static uint32_t collect(struct director *d)
{
	uint32_t n_running = 0;

	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		int status = 0;

		if (d->pids[i] == 0)
			continue;
		if (waitpid(d->pids[i], &status, WNOHANG) == 0) {
			n_running++;
			continue;
		}
		d->pids[i] = 0;
		judge_end(d, i, status);
		atomic_store(&d->shared->slots[i].call_start_ms, 0);
		atomic_store(&d->shared->slots[i].job, 0);
		if (atomic_load(&d->shared->stop) == 0) {
			start_member(d, i);
			n_running++;
		}
	}
	return n_running;
}

/* ---- teams ---- */

static bool team_is_free(const struct director *d, uint32_t team)
{
	for (uint32_t i = 0; i < N_MEMBERS; i++)
		if (atomic_load(&d->shared->slots[i].job) == team + 1)
			return false;
	return true;
}

static bool is_available(const struct director *d, uint32_t index)
{
	return d->pids[index] != 0 && !d->killed[index] && d->stopped_until_ms[index] == 0 &&
	       atomic_load(&d->shared->slots[index].job) == 0;
}

/* Up to @most members in an order that the dice choose. */
static uint32_t pick_members(struct director *d, uint32_t most, uint32_t *members)
{
	uint32_t first = (uint32_t)roll(&d->dice, N_MEMBERS);
	uint32_t n = 0;

	for (uint32_t k = 0; k < N_MEMBERS && n < most; k++) {
		uint32_t index = (first + k * 3) % N_MEMBERS;

		if (is_available(d, index))
			members[n++] = index;
	}
	return n;
}

static void form_team(struct director *d, uint32_t number)
{
	struct team *team = &d->shared->teams[number];
	uint32_t most = (uint32_t)roll(&d->dice, TEAM_MAX) + 1;
	uint32_t members[TEAM_MAX] = {0};
	uint32_t n = pick_members(d, most, members);

	if (n == 0 || (n < most && roll(&d->dice, 4) != 0))
		return;
	*team = (struct team){
		.n = n,
		.seed = roll(&d->dice, UINT64_MAX),
		.n_steps = (uint32_t)roll(&d->dice, 60) + 1,
		.max_count = roll(&d->dice, 4) == 0 ? 30000 : 1500,
	};
	memcpy(team->members, members, sizeof(members));
	if (roll(&d->dice, 4) == 0) {
		team->timeout_ns = 300000000ull * test_slow();
		atomic_store(&team->trouble, TROUBLE_HASTY);
	}
	atomic_store(&team->since_ms, test_now_ms());
	for (uint32_t r = 0; r < n; r++)
		atomic_store(&d->shared->slots[members[r]].job, number + 1);
	d->n_teams++;
}

static void form_teams(struct director *d)
{
	for (uint32_t t = 0; t < N_TEAMS; t++)
		if (team_is_free(d, t))
			form_team(d, t);
}

/* ---- disturbances ---- */

static void kill_member(struct director *d, uint32_t index)
{
	note(d, index, TROUBLE_KILLED);
	d->killed[index] = true;
	d->stopped_until_ms[index] = 0;
	d->n_kills++;
	assert_int_equal(kill(d->pids[index], SIGKILL), 0);
}

static void stop_member(struct director *d, uint32_t index)
{
	note(d, index, 0);
	d->stopped_until_ms[index] = test_now_ms() + 50 + roll(&d->dice, 1000);
	d->n_stops++;
	assert_int_equal(kill(d->pids[index], SIGSTOP), 0);
}

/* Half of the stopped ones die where they were stopped. */
static void end_stops(struct director *d, bool at_once)
{
	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		if (d->stopped_until_ms[i] == 0)
			continue;
		if (!at_once && test_now_ms() < d->stopped_until_ms[i])
			continue;
		if (!at_once && roll(&d->dice, 2) == 0) {
			kill_member(d, i);
			continue;
		}
		assert_int_equal(kill(d->pids[i], SIGCONT), 0);
		note(d, i, 0);
		d->stopped_until_ms[i] = 0;
	}
}

static void disturb(struct director *d)
{
	uint32_t index = (uint32_t)roll(&d->dice, N_MEMBERS);
	bool stop = roll(&d->dice, 3) == 0;

	if (test_now_ms() < d->next_disturbance_ms)
		return;
	d->next_disturbance_ms = test_now_ms() + 10 + roll(&d->dice, 150) * test_slow();
	if (d->pids[index] == 0 || d->killed[index] || d->stopped_until_ms[index] != 0)
		return;
	if (stop)
		stop_member(d, index);
	else
		kill_member(d, index);
}

/* ---- who hangs ---- */

static bool any_stopped(const struct director *d, const struct team *team)
{
	for (uint32_t r = 0; r < team->n; r++)
		if (d->stopped_until_ms[team->members[r]] != 0)
			return true;
	return false;
}

static void hangs(const struct director *d, uint32_t index, uint64_t ms, uint64_t since_ms)
{
	const struct team *team = team_of(d, index);

	if (getenv("RCCLX_STRESS_PAUSE") != NULL) {
		/* For a debugger. */
		print_message("member %u (pid %d), daemon %d\n", index, (int)d->pids[index],
			(int)d->node->pid);
		(void)alarm(0);
		(void)pause();
	}
	fail_msg("member %u (pid %d) hangs in %s for %llu ms, %llu ms after something happened to "
		 "its team of %u, seed %llu, troubles 0x%x",
		index, (int)d->pids[index], atomic_load(&d->shared->slots[index].call),
		(unsigned long long)ms, (unsigned long long)since_ms, team->n,
		(unsigned long long)team->seed, atomic_load(&team->trouble));
}

static void look_for_hangs(const struct director *d)
{
	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		const struct slot *slot = &d->shared->slots[i];
		uint64_t start = atomic_load(&slot->call_start_ms);
		uint64_t limit = atomic_load(&slot->call_limit_ms);
		const struct team *team = team_of(d, i);

		if (team == NULL || start == 0 || d->killed[i] || any_stopped(d, team))
			continue;
		uint32_t trouble = atomic_load(&team->trouble);
		uint64_t since = atomic_load(&team->since_ms);
		if ((trouble & ~(uint32_t)TROUBLE_HASTY) != 0 && limit == CALL_MS)
			limit = AFTER_LOSS_MS;
		if (since < start)
			since = start;
		if (test_now_ms() <= since + limit * test_slow())
			continue;
		/* It may have come to an end meanwhile. */
		if (atomic_load(&slot->call_start_ms) == start)
			hangs(d, i, test_now_ms() - start, test_now_ms() - since);
	}
}

static void check_daemon(const struct director *d)
{
	int status = 0;

	if (waitpid(d->node->pid, &status, WNOHANG) == 0)
		return;
	d->node->pid = 0;
	fail_msg("the daemon ended, status 0x%x", (unsigned int)status);
}

/* ---- the whole ---- */

static void look(struct director *d)
{
	(void)collect(d);
	check_daemon(d);
	look_for_hangs(d);
	test_sleep_ms(2);
}

static bool all_idle(const struct director *d)
{
	for (uint32_t i = 0; i < N_MEMBERS; i++)
		if (atomic_load(&d->shared->slots[i].job) != 0)
			return false;
	return true;
}

static void finish(struct director *d)
{
	uint64_t end = test_now_ms() + FINISH_MS * test_slow();

	end_stops(d, true);
	while (!all_idle(d)) {
		look(d);
		if (test_now_ms() > end)
			fail_msg("the last teams do not come to an end");
	}
	atomic_store(&d->shared->stop, 1);
	while (collect(d) > 0) {
		check_daemon(d);
		test_sleep_ms(2);
		if (test_now_ms() > end)
			fail_msg("members do not end");
	}
}

static uint64_t sum_results(const struct director *d, rcclx_result r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < N_MEMBERS; i++)
		n += atomic_load(&d->shared->slots[i].results[r]);
	return n;
}

/* Shows what was reached; a run that hardly did anything has tested nothing. */
static void report(const struct director *d, uint64_t seconds)
{
	uint64_t n_shrunk = 0;
	uint64_t n_compared = 0;

	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		n_shrunk += atomic_load(&d->shared->slots[i].n_shrunk);
		n_compared += atomic_load(&d->shared->slots[i].n_compared);
	}
	print_message("%llu teams; %llu killed, %llu stopped, %llu exited; %llu collectives "
		      "compared, %llu shrunk\n",
		(unsigned long long)d->n_teams, (unsigned long long)d->n_kills,
		(unsigned long long)d->n_stops, (unsigned long long)d->n_exits,
		(unsigned long long)n_compared, (unsigned long long)n_shrunk);
	for (rcclx_result r = 0; r < RCCLX_ERR_N; r++)
		if (sum_results(d, r) > 0)
			print_message("%10llu x %s\n", (unsigned long long)sum_results(d, r),
				rcclx_strerror(r));
	assert_true(n_compared > 20 * seconds / test_slow());
	if (seconds < 20)
		return;
	assert_true(d->n_kills > 0 && d->n_stops > 0 && n_shrunk > 0);
	assert_true(sum_results(d, RCCLX_ERR_PEER_LOST) > 0);
	assert_true(sum_results(d, RCCLX_ERR_MISMATCH) > 0);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end = NULL;

	if (text == NULL || text[0] == '\0')
		return otherwise;
	errno = 0;
	uint64_t value = strtoull(text, &end, 0);
	if (errno != 0 || *end != '\0')
		fail_msg("%s=%s is no number", name, text);
	return value;
}

static void test_stress(void **state)
{
	struct director *d = &director;
	uint64_t seconds = number_from("RCCLX_STRESS_SECONDS", DEFAULT_SECONDS);
	uint64_t seed = number_from("RCCLX_STRESS_SEED", (uint64_t)time(NULL));
	void *shared = mmap(NULL, sizeof(*d->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(shared != MAP_FAILED);
	print_message("RCCLX_STRESS_SEED=%llu RCCLX_STRESS_SECONDS=%llu\n",
		(unsigned long long)seed, (unsigned long long)seconds);
	harness_limit((unsigned int)seconds + 60);
	*d = (struct director){.shared = shared, .dice = {seed}};
	d->node = node_start(NULL);
	(void)fflush(NULL);
	for (uint32_t i = 0; i < N_MEMBERS; i++)
		start_member(d, i);
	uint64_t end = test_now_ms() + seconds * 1000;
	while (test_now_ms() < end) {
		form_teams(d);
		end_stops(d, false);
		disturb(d);
		look(d);
	}
	finish(d);
	report(d, seconds);
	node_stop(d->node);
}

static int teardown(void **state)
{
	for (uint32_t i = 0; i < N_MEMBERS; i++) {
		if (director.pids[i] <= 0)
			continue;
		(void)kill(director.pids[i], SIGKILL);
		(void)waitpid(director.pids[i], NULL, 0);
		director.pids[i] = 0;
	}
	return harness_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stress, harness_setup, teardown),
	};

	return HARNESS_RUN("stress", tests);
}

/* SPDX-License-Identifier: MIT */
/*
 * A bell serves the calls of one stream in one graph, which ring one after the other, mostly in the
 * order in which they were recorded: so the next one is looked for behind the last. Looking at a
 * bell that is silent costs a load of a cache line that nobody has written.
 */
#include "gpu_bells.h"

#include <errno.h>
#include <stdlib.h>

struct call {
	uint64_t gate; /* number */
	struct gpu_run *run;
	uint32_t i; /* of its gates */
};

struct bell {
	struct rx_list link;
	_Atomic uint64_t *word;
	struct call *calls;
	uint32_t n_calls;
	uint32_t n_allocated;
	uint32_t next; /* where to begin to look */
};

struct gpu_bells {
	struct rx_list bells;
};

struct gpu_bells *gpu_bells_new(void)
{
	struct gpu_bells *bells = calloc(1, sizeof(*bells));

	if (bells)
		rx_list_init(&bells->bells);
	return bells;
}

static void bell_free(struct bell *bell)
{
	rx_list_unlink(&bell->link);
	free(bell->calls);
	free(bell);
}

struct gpu_bells *gpu_bells_free(struct gpu_bells *bells)
{
	if (!bells)
		return NULL;
	rx_list_for_each_safe (pos, &bells->bells)
		bell_free(rx_list_entry(pos, struct bell, link));
	free(bells);
	return NULL;
}

bool gpu_bells_any(const struct gpu_bells *bells)
{
	return !rx_list_empty(&bells->bells);
}

static struct bell *find(struct gpu_bells *bells, const _Atomic uint64_t *word)
{
	/* The last one first: calls are recorded graph by graph. */
	for (struct rx_list *pos = bells->bells.prev; pos != &bells->bells; pos = pos->prev) {
		struct bell *bell = rx_list_entry(pos, struct bell, link);

		if (bell->word == word)
			return bell;
	}
	return NULL;
}

int gpu_bells_add(struct gpu_bells *bells, struct gpu_run *run, uint32_t i)
{
	struct bell *bell = find(bells, run->gates[i].bell);

	if (!bell) {
		bell = calloc(1, sizeof(*bell));
		if (!bell)
			return -ENOMEM;
		bell->word = run->gates[i].bell;
		rx_list_push(&bells->bells, &bell->link);
	}
	if (bell->n_calls == bell->n_allocated) {
		uint32_t n = bell->n_allocated ? 2 * bell->n_allocated : 16;
		struct call *calls = reallocarray(bell->calls, n, sizeof(*calls));

		if (!calls) {
			if (bell->n_calls == 0)
				bell_free(bell);
			return -ENOMEM;
		}
		bell->calls = calls;
		bell->n_allocated = n;
	}
	bell->calls[bell->n_calls++] = (struct call){run->gates[i].value, run, i};
	return 0;
}

void gpu_bells_remove(struct gpu_bells *bells, const struct gpu_run *run, uint32_t i)
{
	struct bell *bell = find(bells, run->gates[i].bell);
	uint32_t n_kept = 0;

	if (!bell)
		return;
	for (uint32_t k = 0; k < bell->n_calls; k++)
		if (bell->calls[k].run != run || bell->calls[k].i != i)
			bell->calls[n_kept++] = bell->calls[k];
	bell->n_calls = n_kept;
	bell->next = 0;
	if (n_kept == 0)
		bell_free(bell);
}

/* NULL: a number that was never recorded with this bell. */
static const struct call *find_call(struct bell *bell, uint64_t gate)
{
	for (uint32_t i = 0; i < bell->n_calls; i++) {
		uint32_t at = (bell->next + i) % bell->n_calls;

		if (bell->calls[at].gate == gate) {
			bell->next = at + 1;
			return &bell->calls[at];
		}
	}
	return NULL;
}

bool gpu_bells_look(struct gpu_bells *bells, struct rx_list *ready)
{
	bool any = false;

	rx_list_for_each (pos, &bells->bells) {
		struct bell *bell = rx_list_entry(pos, struct bell, link);
		uint64_t gate = rx_bell_take(bell->word);
		const struct call *call = gate != 0 ? find_call(bell, gate) : NULL;

		any |= gate != 0;
		if (call && gpu_run_rung(call->run, call->i))
			rx_list_push(ready, &call->run->job.link);
	}
	return any;
}

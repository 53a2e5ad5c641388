/* SPDX-License-Identifier: MIT */
/*
 * Communicators made from communicators. The ranks of the new one find each other under an id that
 * each of them derives from the parent's: whoever is in the parent can do so, nobody else can. What
 * the id says (how many were derived before, which color, which survivors) is the same for those
 * who belong together; if they disagree about it, forming times out instead of mixing them up.
 */
#include "comm.h"

#include "err.h"
#include "group.h"
#include "session.h"

#include <string.h>

enum derive_kind { DERIVE_SPLIT = 1, DERIVE_DUPLICATE = 2, DERIVE_SHRINK = 3 };

/* The bytes of an id that are random; the others name the daemon. */
#define ID_RANDOM_AT    32u
#define ID_RANDOM_WORDS 4u

/* Finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void stir(uint64_t words[ID_RANDOM_WORDS], uint64_t carry)
{
	for (size_t i = 0; i < ID_RANDOM_WORDS; i++) {
		carry = mix(carry + words[i] + 0x9e3779b97f4a7c15u);
		words[i] ^= carry;
	}
}

static struct rcclx_unique_id derive_id(
	const struct rcclx_comm *comm, enum derive_kind kind, uint32_t number, uint64_t detail)
{
	struct rcclx_unique_id id = comm->id;
	uint64_t words[ID_RANDOM_WORDS];
	uint64_t told[] = {(uint64_t)kind, number, detail};

	memcpy(words, id.bytes + ID_RANDOM_AT, sizeof(words));
	for (size_t round = 0; round < 2 * RX_ARRAY_SIZE(told); round++)
		stir(words, told[round % RX_ARRAY_SIZE(told)]);
	memcpy(id.bytes + ID_RANDOM_AT, words, sizeof(words));
	return id;
}

rcclx_result rcclx_unique_id_of_name(
	struct rcclx_client *client, const char *name, struct rcclx_unique_id *id_p)
{
	uint64_t words[ID_RANDOM_WORDS] = {0};
	struct rcclx_unique_id id;
	rcclx_result r = RCCLX_OK;

	if (!name || !id_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_unique_id_of_name: %s is NULL",
			name ? "id_p" : "name");
	/* For the bytes that name the daemon. */
	r = rcclx_unique_id_create(client, &id);
	if (r != RCCLX_OK)
		return r;
	stir(words, strlen(name));
	for (const char *c = name; *c; c++)
		stir(words, (uint8_t)*c);
	memcpy(id.bytes + ID_RANDOM_AT, words, sizeof(words));
	*id_p = id;
	return RCCLX_OK;
}

struct split_entry {
	int32_t color;
	int32_t key;
};

static_assert(sizeof(struct split_entry) == 2 * sizeof(int32_t), "gathered as int32");

/* Place of this rank among those of its color, and their number. */
static void place_in_color(const struct rcclx_comm *comm, const struct split_entry *entries,
	uint32_t *rank_p, uint32_t *n_p)
{
	const struct split_entry *mine = &entries[comm->rank];
	uint32_t before = 0;
	uint32_t n = 0;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct split_entry *other = &entries[rank];

		if (other->color != mine->color)
			continue;
		n++;
		before += other->key < mine->key || (other->key == mine->key && rank < comm->rank);
	}
	*rank_p = before;
	*n_p = n;
}

static rcclx_result check(const char *function, struct rcclx_comm *comm, struct rcclx_comm **comm_p)
{
	if (!comm || !comm_p)
		return err_set(
			RCCLX_ERR_INVALID, "%s: %s is NULL", function, comm ? "comm_p" : "comm");
	return session_usable(comm->client);
}

rcclx_result rcclx_comm_split(struct rcclx_comm *comm, int32_t color, int32_t key,
	const struct rcclx_comm_config *config, struct rcclx_comm **comm_p)
{
	struct split_entry entries[RX_MAX_RANKS];
	struct split_entry mine = {color, key};
	struct rcclx_unique_id id;
	rcclx_result r = check("rcclx_comm_split", comm, comm_p);
	uint32_t rank = 0;
	uint32_t n = 0;

	if (r == RCCLX_OK && group_is_open())
		r = err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_split: a group is open in this thread; ranks have to hear of "
			"each other's colors first: split outside of groups");
	if (r == RCCLX_OK && color < 0 && color != RCCLX_NO_COLOR)
		r = err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_split: color is %d, expected a number >= 0 or RCCLX_NO_COLOR",
			color);
	if (r == RCCLX_OK)
		r = rcclx_all_gather(comm, &mine, entries, 2, RCCLX_INT32, NULL);
	if (r != RCCLX_OK)
		return r;
	id = derive_id(comm, DERIVE_SPLIT, comm->n_derived++, (uint64_t)(uint32_t)color);
	if (color == RCCLX_NO_COLOR) {
		*comm_p = NULL;
		return RCCLX_OK;
	}
	place_in_color(comm, entries, &rank, &n);
	return rcclx_comm_create(comm->client, &id, n, rank, config, comm_p);
}

rcclx_result rcclx_comm_duplicate(
	struct rcclx_comm *comm, const struct rcclx_comm_config *config, struct rcclx_comm **comm_p)
{
	struct rcclx_unique_id id;
	rcclx_result r = check("rcclx_comm_duplicate", comm, comm_p);

	if (r == RCCLX_OK)
		r = comm_usable(comm);
	if (r != RCCLX_OK)
		return r;
	id = derive_id(comm, DERIVE_DUPLICATE, comm->n_derived++, 0);
	return rcclx_comm_create(comm->client, &id, comm->n_ranks, comm->rank, config, comm_p);
}

/* Bitmap of the ranks that stay. */
static rcclx_result survivors(const struct rcclx_comm *comm, const uint32_t *excluded,
	uint32_t n_excluded, uint64_t *mask_p)
{
	uint64_t mask = 0;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (atomic_load(&comm->fabric.ctl->status[rank]) == RX_MEMBER_ALIVE)
			mask |= 1ull << rank;
	for (uint32_t i = 0; i < n_excluded; i++) {
		if (excluded[i] >= comm->n_ranks)
			return err_set(RCCLX_ERR_INVALID,
				"rcclx_comm_shrink: excluded rank %u does not exist, the "
				"communicator has %u",
				excluded[i], comm->n_ranks);
		mask &= ~(1ull << excluded[i]);
	}
	if (!(mask & 1ull << comm->rank))
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_shrink: this rank, %u, is itself excluded or gone", comm->rank);
	*mask_p = mask;
	return RCCLX_OK;
}

rcclx_result rcclx_comm_shrink(struct rcclx_comm *comm, const uint32_t *excluded,
	uint32_t n_excluded, const struct rcclx_comm_config *config, struct rcclx_comm **comm_p)
{
	struct rcclx_unique_id id;
	uint64_t mask = 0;
	uint64_t below = 0;
	rcclx_result r = check("rcclx_comm_shrink", comm, comm_p);

	if (r == RCCLX_OK && n_excluded > 0 && !excluded)
		r = err_set(RCCLX_ERR_INVALID, "rcclx_comm_shrink: excluded is NULL");
	if (r == RCCLX_OK)
		r = survivors(comm, excluded, n_excluded, &mask);
	if (r != RCCLX_OK)
		return r;
	/*
	 * Counted apart, and only when it has worked: the failure may have met the survivors on
	 * different sides of a split, and some of them may have tried to shrink before.
	 */
	id = derive_id(comm, DERIVE_SHRINK, comm->n_shrunk, mask);
	below = mask & ((1ull << comm->rank) - 1);
	r = rcclx_comm_create(comm->client, &id, (uint32_t)__builtin_popcountll(mask),
		(uint32_t)__builtin_popcountll(below), config, comm_p);
	comm->n_shrunk += r == RCCLX_OK;
	return r;
}

/* SPDX-License-Identifier: MIT */
/* Checks of a submitted entry: pure, on a private copy. */
#ifndef DAEMON_ENTRY_H
#define DAEMON_ENTRY_H

#include "../kernels/coll_counts.h"
#include "../shm/rx_fabric_abi.h"
#include "../shm/rx_ring_abi.h"

/* What the handles of an entry stand for. */
struct entry_facts {
	uint32_t n_ranks;
	uint32_t rank; /* of who submits */
	bool send_known;
	bool recv_known;
	uint64_t send_bytes; /* size of the region, when known */
	uint64_t recv_bytes;
	const uint64_t *words; /* variable collectives: a private copy of their numbers */
};

enum {
	ENTRY_E_BAD = 1,
};

/**
 * entry_check_words() - may the numbers of a variable collective be read where the entry says?
 * @known: the region is the session's, of @region_bytes
 * @n_words_p: receives how many there are; 0: it is no such collective
 * @why_p: receives a static sentence when not
 * Return: 0, ENTRY_E_BAD.
 */
RX_WARN_UNUSED int entry_check_words(const struct rx_sqe *sqe, uint32_t n_ranks, bool known,
	uint64_t region_bytes, uint32_t *n_words_p, const char **why_p);

/**
 * entry_check() - may the entry be executed on these regions?
 * @extent_p: receives what it touches of them, in elements; a region of extent 0 is not looked at
 * @why_p: receives a static sentence when not
 * Return: 0, ENTRY_E_BAD.
 */
RX_WARN_UNUSED int entry_check(const struct rx_sqe *sqe, const struct entry_facts *facts,
	struct rx_extent *extent_p, const char **why_p);

/** entry_is_p2p() - a send or a receive, whose root is the peer */
bool entry_is_p2p(const struct rx_sqe *sqe);

/** entry_sig() - what all ranks must agree on */
struct rx_op_sig entry_sig(const struct rx_sqe *sqe);

/** sig_describe() - "all_reduce of 1024 float32, sum"; @sig may hold anything */
void sig_describe(const struct rx_op_sig *sig, char *text, size_t bytes);

#endif

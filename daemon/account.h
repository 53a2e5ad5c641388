/* SPDX-License-Identifier: MIT */
/*
 * Budgets: what each user holds of each resource, and a charge object that travels with the thing
 * it pays for and gives the amount back. Loop thread only.
 */
#ifndef DAEMON_ACCOUNT_H
#define DAEMON_ACCOUNT_H

#include "../shm/rx_base.h"
#include "../shm/rx_list.h"

#include <sys/types.h>

enum account_kind {
	ACCOUNT_SESSIONS,
	ACCOUNT_COMMS, /* memberships */
	ACCOUNT_REGIONS,
	ACCOUNT_BYTES,
	ACCOUNT_FDS,
	_ACCOUNT_N
};

struct accounts {
	struct rx_list list; /* of struct account; a handful: users of one node */
	uint64_t used[_ACCOUNT_N];
	uint64_t limit[_ACCOUNT_N];         /* of all users together */
	uint64_t limit_per_uid[_ACCOUNT_N]; /* may change at any time; what is held stays held */
	/* What account_charge() last refused, for the text. */
	struct {
		enum account_kind kind;
		uint64_t used;
		uint64_t limit;
	} refused;
};

/* One user. Lives while anything is charged to it. */
struct account {
	struct rx_list link;
	struct accounts *accounts;
	uid_t uid;
	uint32_t n_charges;
	uint64_t used[_ACCOUNT_N];
};

struct charge {
	struct account *account; /* NULL: nothing charged */
	enum account_kind kind;
	uint64_t amount;
};

#define CHARGE_INIT ((struct charge){0})

enum {
	ACCOUNT_E_USER = 1, /* the user's limit */
	ACCOUNT_E_ALL = 2,  /* everybody's limit */
};

void accounts_init(struct accounts *accounts);
/** accounts_deinit() - asserts that everything was given back */
void accounts_deinit(struct accounts *accounts);

/**
 * account_charge() - take @amount of @kind for @uid
 * @charge_p: not charged; filled on success
 * Return: 0, ACCOUNT_E_USER, ACCOUNT_E_ALL, -ENOMEM.
 */
RX_WARN_UNUSED int account_charge(struct accounts *accounts, uid_t uid, enum account_kind kind,
	uint64_t amount, struct charge *charge_p);

/** charge_release() - give it back; harmless when not charged */
void charge_release(struct charge *charge);

/** account_kind_name() - "sessions", ... */
const char *account_kind_name(enum account_kind kind);

/** account_highest() - largest amount of @kind that one user holds */
uint64_t account_highest(const struct accounts *accounts, enum account_kind kind);

#endif

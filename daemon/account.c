/* SPDX-License-Identifier: MIT */
#include "account.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void accounts_init(struct accounts *accounts)
{
	*accounts = (struct accounts){0};
	rx_list_init(&accounts->list);
	for (uint32_t kind = 0; kind < _ACCOUNT_N; kind++) {
		accounts->limit[kind] = UINT64_MAX;
		accounts->limit_per_uid[kind] = UINT64_MAX;
	}
}

void accounts_deinit(struct accounts *accounts)
{
	assert(rx_list_empty(&accounts->list));
	for (uint32_t kind = 0; kind < _ACCOUNT_N; kind++)
		assert(accounts->used[kind] == 0);
}

static struct account *account_find(struct accounts *accounts, uid_t uid)
{
	rx_list_for_each (pos, &accounts->list) {
		struct account *account = rx_list_entry(pos, struct account, link);

		if (account->uid == uid)
			return account;
	}
	return NULL;
}

static struct account *account_new(struct accounts *accounts, uid_t uid)
{
	struct account *account = calloc(1, sizeof(*account));

	if (!account)
		return NULL;
	account->accounts = accounts;
	account->uid = uid;
	rx_list_push(&accounts->list, &account->link);
	return account;
}

static bool fits(struct accounts *accounts, enum account_kind kind, uint64_t used, uint64_t amount,
	uint64_t limit)
{
	if (used <= limit && amount <= limit - used)
		return true;
	accounts->refused.kind = kind;
	accounts->refused.used = used;
	accounts->refused.limit = limit;
	return false;
}

int account_charge(struct accounts *accounts, uid_t uid, enum account_kind kind, uint64_t amount,
	struct charge *charge_p)
{
	struct account *account = account_find(accounts, uid);

	assert(!charge_p->account);
	if (!fits(accounts, kind, accounts->used[kind], amount, accounts->limit[kind]))
		return ACCOUNT_E_ALL;
	if (!fits(accounts, kind, account ? account->used[kind] : 0, amount,
		    accounts->limit_per_uid[kind]))
		return ACCOUNT_E_USER;
	if (!account)
		account = account_new(accounts, uid);
	if (!account)
		return -ENOMEM;
	account->n_charges++;
	account->used[kind] += amount;
	accounts->used[kind] += amount;
	*charge_p = (struct charge){.account = account, .kind = kind, .amount = amount};
	return 0;
}

void charge_release(struct charge *charge)
{
	struct account *account = charge->account;

	if (!account)
		return;
	assert(account->used[charge->kind] >= charge->amount);
	account->used[charge->kind] -= charge->amount;
	account->accounts->used[charge->kind] -= charge->amount;
	*charge = CHARGE_INIT;
	if (--account->n_charges > 0)
		return;
	rx_list_unlink(&account->link);
	free(account);
}

const char *account_kind_name(enum account_kind kind)
{
	static const char *const names[_ACCOUNT_N] = {
		[ACCOUNT_SESSIONS] = "sessions",
		[ACCOUNT_COMMS] = "comms",
		[ACCOUNT_REGIONS] = "regions",
		[ACCOUNT_BYTES] = "bytes",
		[ACCOUNT_FDS] = "fds",
	};

	return names[kind];
}

uint64_t account_highest(const struct accounts *accounts, enum account_kind kind)
{
	uint64_t highest = 0;

	rx_list_for_each (pos, &accounts->list) {
		const struct account *account = rx_list_entry(pos, struct account, link);

		highest = rx_max_u64(highest, account->used[kind]);
	}
	return highest;
}

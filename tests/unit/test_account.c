/* SPDX-License-Identifier: MIT */
/* Budgets, who may connect, unique ids. */
#include "../../daemon/account.h"
#include "../../daemon/policy.h"
#include "../../daemon/uniqueid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_charge(void **state)
{
	struct accounts accounts;
	struct charge a = CHARGE_INIT;
	struct charge b = CHARGE_INIT;
	struct charge c = CHARGE_INIT;

	(void)state;
	accounts_init(&accounts);
	accounts.limit_per_uid[ACCOUNT_BYTES] = 100;
	accounts.limit[ACCOUNT_BYTES] = 150;
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_BYTES, 60, &a), 0);
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_BYTES, 41, &b), ACCOUNT_E_USER);
	assert_null(b.account);
	assert_int_equal(accounts.refused.kind, ACCOUNT_BYTES);
	assert_int_equal(accounts.refused.used, 60);
	assert_int_equal(accounts.refused.limit, 100);
	assert_int_equal(
		account_charge(&accounts, 1, ACCOUNT_BYTES, UINT64_MAX, &b), ACCOUNT_E_ALL);
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_BYTES, 40, &b), 0);
	/* Another user has a limit of its own, within everybody's. */
	assert_int_equal(account_charge(&accounts, 2, ACCOUNT_BYTES, 51, &c), ACCOUNT_E_ALL);
	assert_int_equal(account_charge(&accounts, 2, ACCOUNT_BYTES, 50, &c), 0);
	assert_int_equal(accounts.used[ACCOUNT_BYTES], 150);
	assert_int_equal(account_highest(&accounts, ACCOUNT_BYTES), 100);
	charge_release(&a);
	charge_release(&a);
	assert_int_equal(accounts.used[ACCOUNT_BYTES], 90);
	assert_int_equal(account_highest(&accounts, ACCOUNT_BYTES), 50);
	charge_release(&b);
	charge_release(&c);
	accounts_deinit(&accounts);
}

/* A limit that shrinks takes nothing away, and lets nothing in. */
static void test_limit_shrinks(void **state)
{
	struct accounts accounts;
	struct charge a = CHARGE_INIT;
	struct charge b = CHARGE_INIT;

	(void)state;
	accounts_init(&accounts);
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_SESSIONS, 5, &a), 0);
	accounts.limit_per_uid[ACCOUNT_SESSIONS] = 3;
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_SESSIONS, 1, &b), ACCOUNT_E_USER);
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_SESSIONS, 0, &b), ACCOUNT_E_USER);
	charge_release(&a);
	assert_int_equal(account_charge(&accounts, 1, ACCOUNT_SESSIONS, 3, &b), 0);
	charge_release(&b);
	accounts_deinit(&accounts);
}

static void test_policy(void **state)
{
	struct policy shared = {.private_mode = false, .own_uid = 900};
	struct policy own = {.private_mode = true, .own_uid = 1000};

	(void)state;
	assert_true(policy_may_connect(&shared, false, 1000));
	assert_true(policy_may_connect(&shared, false, 0));
	assert_true(policy_may_connect(&shared, true, 0));
	assert_true(policy_may_connect(&shared, true, 900));
	assert_false(policy_may_connect(&shared, true, 1000));
	assert_true(policy_may_connect(&own, false, 1000));
	assert_true(policy_may_connect(&own, true, 1000));
	assert_false(policy_may_connect(&own, false, 1001));
	assert_false(policy_may_connect(&own, false, 0));
	assert_true(policy_may_connect(&own, true, 0));
}

static void test_unique_id(void **state)
{
	static const uint8_t instance[RX_INSTANCE_BYTES] = "0123456789abcdef";
	static const uint8_t other[RX_INSTANCE_BYTES] = "0123456789abcdeX";
	uint8_t id[RX_UNIQUE_ID_BYTES];
	uint8_t id2[RX_UNIQUE_ID_BYTES];

	(void)state;
	assert_int_equal(uniqueid_make(instance, id), 0);
	assert_int_equal(uniqueid_make(instance, id2), 0);
	assert_memory_not_equal(id, id2, sizeof(id));
	assert_int_equal(uniqueid_check(instance, id), 0);
	assert_int_equal(uniqueid_check(other, id), UNIQUEID_E_FOREIGN);
	for (uint32_t i = 0; i < RX_UNIQUE_ID_BYTES; i++) {
		bool is_random = i >= 32 && i < 64;

		id[i] ^= 0x10;
		assert_int_equal(uniqueid_check(instance, id) == 0, is_random);
		id[i] ^= 0x10;
	}
}

static void test_id_log(void **state)
{
	static const uint8_t instance[RX_INSTANCE_BYTES] = {1};
	struct uniqueid_log *log = calloc(1, sizeof(*log));
	uint8_t first[RX_UNIQUE_ID_BYTES];
	uint8_t id[RX_UNIQUE_ID_BYTES];

	(void)state;
	assert_int_equal(uniqueid_make(instance, first), 0);
	assert_false(uniqueid_log_has(log, first));
	uniqueid_log_add(log, first);
	assert_true(uniqueid_log_has(log, first));
	for (uint32_t i = 0; i < UNIQUEID_LOG_ENTRIES; i++) {
		assert_true(uniqueid_log_has(log, first));
		assert_int_equal(uniqueid_make(instance, id), 0);
		assert_false(uniqueid_log_has(log, id));
		uniqueid_log_add(log, id);
		assert_true(uniqueid_log_has(log, id));
	}
	/* Bounded: the oldest is forgotten. */
	assert_false(uniqueid_log_has(log, first));
	free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charge),
		cmocka_unit_test(test_limit_shrinks),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_unique_id),
		cmocka_unit_test(test_id_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

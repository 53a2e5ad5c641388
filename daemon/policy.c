/* SPDX-License-Identifier: MIT */
#include "policy.h"

bool policy_may_connect(const struct policy *policy, bool admin, uid_t uid)
{
	if (!policy->private_mode && !admin)
		return true;
	return uid == policy->own_uid || (uid == 0 && admin);
}

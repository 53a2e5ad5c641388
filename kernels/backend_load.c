/* SPDX-License-Identifier: MIT */
#include "backend_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool rx_backend_name_ok(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return len > 0 && len <= RX_BACKEND_NAME_MAX && name[len] == '\0';
}

/* A plugin of another version may still be compatible: newer ones only grow the struct. */
static const char *unfit(const struct rx_backend_v1 *ops)
{
	if (!ops)
		return "it has no symbol " RX_BACKEND_SYMBOL;
	if (ops->abi != RX_BACKEND_ABI)
		return "it was built for another version of the backend interface";
	if (ops->size < sizeof(*ops))
		return "it was built for an older version of the backend interface";
	return NULL;
}

int rx_backend_load(const char *dir, const char *name, const struct rx_backend_v1 **ops_p,
	char why[RX_BACKEND_WHY])
{
	char path[PATH_MAX];
	const struct rx_backend_v1 *ops = NULL;
	const char *reason = NULL;
	void *plugin = NULL;
	int n = snprintf(path, sizeof(path), "%s/rcclx_backend_%s.so", dir, name);

	if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK) < 0) {
		(void)snprintf(why, RX_BACKEND_WHY, "no rcclx_backend_%s.so in %.200s", name, dir);
		return RX_BACKEND_E_ABSENT;
	}
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (plugin)
		ops = dlsym(plugin, RX_BACKEND_SYMBOL);
	reason = plugin ? unfit(ops) : dlerror();
	if (reason) {
		(void)snprintf(why, RX_BACKEND_WHY, "%.160s cannot be used: %.200s", path, reason);
		if (plugin)
			(void)dlclose(plugin);
		return RX_BACKEND_E_BAD;
	}
	*ops_p = ops;
	return 0;
}

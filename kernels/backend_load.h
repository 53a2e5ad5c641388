/* SPDX-License-Identifier: MIT */
/* Loads a GPU backend: a plugin of rx_backend.h. For the daemon and for clients alike. */
#ifndef RX_BACKEND_LOAD_H
#define RX_BACKEND_LOAD_H

#include "rx_backend.h"

#define RX_BACKEND_NAME_MAX 15u  /* letters, digits and _ */
#define RX_BACKEND_WHY      400u /* bytes of a text */

enum {
	RX_BACKEND_E_ABSENT = 1, /* no such file */
	RX_BACKEND_E_BAD = 2,    /* a file that is no plugin for us */
};

/**
 * rx_backend_load() - load rcclx_backend_@name.so from @dir
 * @why: receives a sentence on failure
 *
 * Never unloaded: GPU runtimes do not survive that. Loading it again gives the same.
 * Return: 0; RX_BACKEND_E_ABSENT, RX_BACKEND_E_BAD.
 */
RX_WARN_UNUSED int rx_backend_load(const char *dir, const char *name,
	const struct rx_backend_v1 **ops_p, char why[RX_BACKEND_WHY]);

/** rx_backend_name_ok() - can @name be the name of a backend? It becomes part of a path. */
bool rx_backend_name_ok(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/* Environment variables of NCCL and RCCL: which mean something here, and which do not. */
#ifndef NCCL_VARIABLES_H
#define NCCL_VARIABLES_H

#include <stddef.h>

/** Those that have a meaning here, in the order of nccl(7); NULL ends the list. */
extern const char *const variables_used[];

/** variables_list_ignored() - log, at INFO, NCCL's own that are set and mean nothing here */
void variables_list_ignored(void);

#endif

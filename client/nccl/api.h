/* SPDX-License-Identifier: MIT */
/* What every file with exported functions needs. */
#ifndef NCCL_API_H
#define NCCL_API_H

#include "nccl.h"

/* The same function under its second name. */
#define NCCL_TWIN(name) extern __typeof__(name) p##name __attribute__((alias(#name)))

#endif

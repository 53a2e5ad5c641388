/* SPDX-License-Identifier: MIT */
/* The kernels of the collectives that reduce, one for each type. */
#include "dev_reduce.h"
#include "dev_value.h"

#define DEV_TYPE_FILE "dev_fold.h"
#include "dev_types.h"
#undef DEV_TYPE_FILE

/* SPDX-License-Identifier: MIT */
/* All kernels that the daemon launches, as one code object. */
#include "copy.hip"
#include "mx.hip"
#include "reduce.hip"

/* SPDX-License-Identifier: MIT */
/* All kernels, as one code object: those that the daemon launches, and those of streams. */
#include "copy.hip"
#include "inline.hip"
#include "mx.hip"
#include "reduce.hip"

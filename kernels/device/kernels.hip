/* SPDX-License-Identifier: MIT */
/* All kernels, as one code object. */
#include "copy.hip"
#include "inline.hip"
#include "mx.hip"
#include "reduce.hip"

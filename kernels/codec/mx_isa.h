/* SPDX-License-Identifier: MIT */
/*
 * What mxfp8.c chooses from.
 *
 * The portable functions are the definitions in a loop. They also do for the others what is rare:
 * blocks with a NaN, an infinity, or values near the ends of a type's range.
 */
#ifndef RX_MX_ISA_H
#define RX_MX_ISA_H

#include "mxfp8.h"

extern const struct rx_mx_table rx_mx_portable[RX_MX_FORMAT_N];
#if defined(__x86_64__)
extern const struct rx_mx_table rx_mx_avx2[RX_MX_FORMAT_N];
#endif

#endif

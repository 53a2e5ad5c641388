/* SPDX-License-Identifier: MIT */
/* The golden vectors of the low-precision codec; mxfp8_vectors.py says what a line is. */
#ifndef MXFP8_GOLDEN_H
#define MXFP8_GOLDEN_H

#include "../../kernels/codec/mxfp8.h"

/* One block, and what encoding and decoding it gives. */
struct mx_golden {
	uint32_t dtype;
	uint32_t n;
	uint8_t input[RX_MX_BLOCK * 4];
	uint8_t scale;
	uint8_t elems[RX_MX_BLOCK];
	uint8_t output[RX_MX_BLOCK * 4];
};

/** mx_golden_in() - read all of a format, in a test: @check each of them */
void mx_golden_in(enum rx_mx_format format, void (*check)(const struct mx_golden *golden));

/** mx_golden_each() - those of MXFP8 */
void mx_golden_each(void (*check)(const struct mx_golden *golden));

#endif

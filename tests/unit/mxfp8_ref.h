/* SPDX-License-Identifier: MIT */
/*
 * What the low-precision codec has to give, made slowly: scales are tried from the smallest on,
 * elements are searched among all codes, in fp64. Shares no code with kernels/. And what the tests
 * of the codec have in common.
 */
#ifndef RX_MXFP8_REF_H
#define RX_MXFP8_REF_H

#include "../../kernels/codec/mxfp8.h"

#define for_each_format(format)                                                                    \
	for (enum rx_mx_format format = RX_MX_FP8; (format) < RX_MX_FORMAT_N; (format)++)

static const uint32_t mx_dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};

/** mx_random() - 64 bits that depend on @seed and @index alone */
uint64_t mx_random(uint64_t seed, uint64_t index);

/** mx_normal() - a value of N(0, 1), the same way */
double mx_normal(uint64_t seed, uint64_t index);

/** mx_ref_value() - what an element is worth; infinite or NaN where it is that */
double mx_ref_value(enum rx_mx_format format, uint8_t element, uint8_t scale);

/** mx_ref_decode() - the element of @dtype that it decodes to */
uint64_t mx_ref_decode(enum rx_mx_format format, uint32_t dtype, uint8_t element, uint8_t scale);

/** mx_ref_encode() - one block; counts what happened in @stats */
void mx_ref_encode(enum rx_mx_format format, uint8_t *elems, uint8_t *scale_p, const void *src,
	uint32_t dtype, uint32_t n, struct rx_mx_stats *stats);

/** mx_ref_add() - bits of the fp32 that two fp32 add up to */
uint32_t mx_ref_add(uint32_t acc, uint32_t value);

#endif

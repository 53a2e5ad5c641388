/* SPDX-License-Identifier: MIT */
/*
 * The low-precision decoder: any bytes give what the definition says, no byte beside the buffers is
 * touched, and only an escape block or the NaN code gives what is not finite.
 *
 * Input: dtype and format, two alignments, then scales and elements for as many blocks as there are
 * bytes for.
 */
#include "../../kernels/codec/mxfp8.h"
#include "../../kernels/codec/mxint8_def.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENTS 32u
#define GUARD      64u
#define FILLER     0xa5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_guard(const uint8_t *at)
{
	for (unsigned i = 0; i < GUARD; i++) {
		if (at[i] != FILLER)
			abort();
	}
}

/* Bits of an element as fp32, which says whether it is finite. */
static void check_value(enum rx_mx_format format, uint32_t bits, uint8_t elem, uint8_t scale)
{
	bool may_be_special =
		scale >= RX_MX_ESCAPE || (format == RX_MX_FP8 && (elem & 0x7f) == RX_MX_E4M3_NAN);

	if ((bits & RX_MX_MAGNITUDE) >= RX_MX_INF && !may_be_special)
		abort();
	if (bits != (format == RX_MX_FP8 ? rx_mx_decode_one(elem, scale)
					 : rx_mxint8_decode_one(elem, scale)))
		abort();
}

static void decode(enum rx_mx_format format, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, uint32_t dtype, uint32_t alignment)
{
	const struct rx_mx_codec *codec = rx_mx_codec_of(format);
	uint64_t bytes = count * rx_dtype_size(dtype);
	uint8_t *room = malloc(bytes + ALIGNMENTS + 2 * GUARD);
	float *acc = calloc(count + 1, sizeof(*acc));
	uint8_t *dst = room + GUARD + alignment;

	if (!room || !acc)
		abort();
	memset(room, FILLER, bytes + ALIGNMENTS + 2 * GUARD);
	codec->decode(dst, dtype, elems, scales, count, false);
	check_guard(dst - GUARD);
	check_guard(dst + bytes);
	for (uint64_t i = 0; dtype == RX_FLOAT32 && i < count; i++) {
		uint32_t bits = 0;

		memcpy(&bits, dst + i * sizeof(bits), sizeof(bits));
		check_value(format, bits, elems[i], scales[i / RX_MX_BLOCK]);
	}
	codec->decode_add(acc, elems, scales, count, true);
	codec->decode_add(acc, elems, scales, count, false);
	rx_mx_finish(dst, dtype, acc, count, RX_AVG, 2);
	check_guard(dst - GUARD);
	check_guard(dst + bytes);
	free(acc);
	free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};
	uint64_t count = 0;
	uint8_t *scales = NULL;
	uint8_t *elems = NULL;

	if (size < 3)
		return 0;
	/* The longest message whose bytes are all there; copies, so that each ends where it ends.
	 */
	count = (size - 3) * RX_MX_BLOCK / (RX_MX_BLOCK + 1);
	scales = malloc(rx_mx_scales(count) + 1);
	elems = malloc(count + ALIGNMENTS);
	if (!scales || !elems)
		abort();
	memcpy(scales, data + 3, rx_mx_scales(count));
	memcpy(elems + data[1] % ALIGNMENTS, data + 3 + rx_mx_scales(count), count);
	decode(data[0] / 3 % RX_MX_FORMAT_N, elems + data[1] % ALIGNMENTS, scales, count,
		dtypes[data[0] % 3], data[2] % ALIGNMENTS);
	free(scales);
	free(elems);
	return 0;
}

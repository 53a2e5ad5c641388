/* SPDX-License-Identifier: MIT */
/*
 * Non-temporal stores pay when whole cache lines are written, one after the other, so only the
 * lines that lie entirely in the destination are written that way.
 *
 * Plain copies are memcpy()'s, but in pieces where source and destination begin at different
 * places of a cache line, as memory of malloc() and pages do. From 2112 bytes up to the size of
 * an L2, glibc copies with "rep movsb", which needs up to 20 times as long for that as a loop does
 * on processors that have a fast one for aligned copies (EPYC 7003, 64 KiB 16 bytes apart: 40 us
 * instead of 2.5). A piece is below all its limits.
 */
#include "copy.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static void stream_line(uint8_t *dst, const uint8_t *src)
{
	__m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
	__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + 16));
	__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + 32));
	__m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + 48));

	_mm_stream_si128((__m128i *)(void *)dst, a);
	_mm_stream_si128((__m128i *)(void *)(dst + 16), b);
	_mm_stream_si128((__m128i *)(void *)(dst + 32), c);
	_mm_stream_si128((__m128i *)(void *)(dst + 48), d);
}

void rx_stream_fence(void)
{
	_mm_sfence();
}
#else
/* Elsewhere plain stores: the hardware notices long runs of whole lines by itself. */
static void stream_line(uint8_t *dst, const uint8_t *src)
{
	memcpy(dst, src, RX_CACHE_LINE);
}

void rx_stream_fence(void)
{
}
#endif

void rx_copy_unfenced(void *dst, const void *src, uint64_t bytes)
{
	uint8_t *to = dst;
	const uint8_t *from = src;
	uint64_t head = rx_min_u64(bytes, -(uintptr_t)to & (RX_CACHE_LINE - 1));
	uint64_t at = head;

	memcpy(to, from, head);
	for (; bytes - at >= RX_CACHE_LINE; at += RX_CACHE_LINE)
		stream_line(to + at, from + at);
	memcpy(to + at, from + at, bytes - at);
}

#define PIECE_BYTES 2048u
/* Longer ones get a loop from glibc, too, and one that prefetches. */
#define PIECES_BELOW (512u * 1024)

static void copy_plain(uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
	bool apart = (((uintptr_t)dst ^ (uintptr_t)src) & (RX_CACHE_LINE - 1)) != 0;

	while (apart && bytes > PIECE_BYTES && bytes < PIECES_BELOW) {
		memcpy(dst, src, PIECE_BYTES);
		dst += PIECE_BYTES;
		src += PIECE_BYTES;
		bytes -= PIECE_BYTES;
	}
	memcpy(dst, src, bytes);
}

void rx_copy(void *dst, const void *src, uint64_t bytes, bool stream)
{
	if (bytes == 0 || dst == src)
		return;
	if (!stream) {
		copy_plain(dst, src, bytes);
		return;
	}
	rx_copy_unfenced(dst, src, bytes);
	rx_stream_fence();
}

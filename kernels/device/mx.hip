/* SPDX-License-Identifier: MIT */
/* The kernels of collectives in low precision, one for each type. */
#include "dev_mx.h"

/* ---- values to fp32; to their bits, rounded, and what is finite stays so ---- */

#define dev_mx_in_f32(bits)  dev_float(bits)
#define dev_mx_in_bf16(bits) dev_widen_bf16(bits)
#define dev_mx_in_f16(bits)  dev_widen_f16((bits)&0xffffu)

DEV_FN uint32_t dev_mx_out_f32(float v)
{
	return rx_mx_clamp(dev_bits(v), RX_MX_MAX_F32);
}

DEV_FN uint32_t dev_mx_out_bf16(float v)
{
	return dev_narrow_bf16(dev_float(rx_mx_clamp(dev_bits(v), RX_MX_MAX_BF16)));
}

DEV_FN uint32_t dev_mx_out_f16(float v)
{
	return dev_narrow_f16(dev_float(rx_mx_clamp(dev_bits(v), RX_MX_MAX_F16)));
}

/* ---- one kernel for each ---- */

/*
 * On NVIDIA, twice as many threads bring more than twice as many blocks that each has in flight,
 * but the 16-bit types do not fit in half of the registers. On AMD, the registers of QUICK would
 * halve how many threads there are. On the CPU, both ways are to be tested.
 */
#if defined(DEV_CUDA)
#define UNROLL_32 1
#define UNROLL_16 2
#define QUICK_32  1
#define QUICK_16  1
#elif defined(DEV_AMD)
#define UNROLL_32 2
#define UNROLL_16 1
#define QUICK_32  0
#define QUICK_16  0
#else
#define UNROLL_32 2
#define UNROLL_16 1
#define QUICK_32  0
#define QUICK_16  1
#endif

#define T      f32
#define DTYPE  RX_FLOAT32
#define SIZE   4
#define ABOVE  RX_MX_INF
#define UNROLL UNROLL_32
#define QUICK  QUICK_32
#define DENSE  2
#include "dev_mx_type.h"

#define T      bf16
#define DTYPE  RX_BFLOAT16
#define SIZE   2
#define ABOVE  RX_MX_INF
#define UNROLL UNROLL_16
#define QUICK  QUICK_16
#define DENSE  1
#include "dev_mx_type.h"

#define T      f16
#define DTYPE  RX_FLOAT16
#define SIZE   2
#define ABOVE  0x47800000u /* 65536 */
#define UNROLL UNROLL_16
#define QUICK  QUICK_16
#define DENSE  1
#include "dev_mx_type.h"

/* SPDX-License-Identifier: MIT */
/*
 * What the kernels need of a device, three times: clang's builtins for AMD, PTX for NVIDIA, and
 * threads of the CPU, where one thread stands for one thread of the device. No header of a GPU
 * runtime is included. Kernels are written in what C and C++ have in common.
 *
 * Memory order, where launches meet. The side that signals: all threads have their stores in
 * memory's order (dev_drain), the block meets, one thread releases at system scope. The side that
 * waits: one thread acquires at system scope, the block meets, and all threads acquire
 * (dev_refresh), since a wavefront's loads may otherwise be served by what the cache held before.
 * dev_store_early() is for what a launch tells before it has stored anything that has to be seen
 * with it: the end of the launch before it was the fence, of which a CPU has to be told.
 *
 * Registers. What all threads share is kept in few registers on AMD. dev_fresh() makes what is read
 * of the arguments afterwards be read again, rather than kept from before; dev_block() and
 * dev_is_first() are found out each time. Arrays that are filled under a condition are cleared
 * first: otherwise the compiler is free to keep what they held in the round before, and does.
 *
 * Groups. dev_group_max() is the largest of the values of @width threads, 4 or 8, whose numbers
 * differ only below that, dev_group_any() whether one of them is true. dev_step_any() is the same
 * for all threads that run in step: at least for the group. DEV_STEP threads call these together,
 * whatever they have to do.
 *
 * dev_step_some() is dev_group_any(), or the same of more groups, where those have to stay
 * together. dev_exact_mad() is a * b + c, for products that are exact.
 */
#ifndef RX_DEVICE_H
#define RX_DEVICE_H

#include "inline_abi.h"

#if defined(__CUDACC__)
#define DEV_CUDA 1
#elif defined(__HIP__)
#define DEV_AMD 1
#else
#define DEV_CPU 1
#endif

/* Tests remove one of these to see that its absence is noticed. */
#if defined(RX_DEV_MUTATE_RELAXED)
#define DEV_RELEASE_ORDER __ATOMIC_RELAXED
#else
#define DEV_RELEASE_ORDER __ATOMIC_RELEASE
#endif
#if defined(RX_DEV_MUTATE_ACQUIRE)
#define DEV_ACQUIRE_ORDER __ATOMIC_RELAXED
#else
#define DEV_ACQUIRE_ORDER __ATOMIC_ACQUIRE
#endif

struct __attribute__((may_alias)) dev_vec16 {
	uint32_t w[4];
};

struct __attribute__((may_alias)) dev_vec8 {
	uint32_t w[2];
};

/* Two words that lie together, each of which arrives whole. */
struct dev_pair {
	uint64_t v[2];
};

/* What the threads of a block share. */
struct dev_shared {
	uint32_t failed;    /* RX_DEV_E_* | launch << 8; stays */
	uint32_t counts[4]; /* struct rx_dev_mx_counts, of kernels that count */
};

#if defined(DEV_CUDA)
/* ---- NVIDIA ---- */

#define DEV_FN                 static __device__ __forceinline__
#define DEV_CONST              static __device__ const
#define DEV_UNROLL             _Pragma("unroll")
#define DEV_ROLL               _Pragma("unroll 1")
#define DEV_STEP               32u
#define DEV_KERNEL(name, type) DEV_DENSE_KERNEL(name, type, 1)
/* One of which @n blocks of all threads fit a multiprocessor. */
#define DEV_DENSE_KERNEL(name, type, n)                                                            \
	extern "C" __global__ void __launch_bounds__(RX_DEV_MAX_THREADS, n)                        \
		name(const __grid_constant__ type args)
#define DEV_ARGS(type) (&args)
#define DEV_SHARED(name)                                                                           \
	__shared__ struct dev_shared name##_store;                                                 \
	struct dev_shared *const name = &name##_store
#define DEV_SHARED_MORE(type, name)                                                                \
	__shared__ type name##_store;                                                              \
	type *const name = &name##_store

typedef const struct rx_dev_args *dev_args;
typedef const struct rx_dev_words *dev_words;
typedef const struct rx_inl_args *dev_inl_args;
typedef const void *const *dev_table;

DEV_FN uint32_t dev_thread(void)
{
	return threadIdx.x;
}

DEV_FN uint32_t dev_n_threads(void)
{
	return blockDim.x;
}

DEV_FN dev_args dev_fresh(dev_args a)
{
	return a;
}

DEV_FN bool dev_is_first(void)
{
	return dev_thread() == 0;
}

DEV_FN uint32_t dev_block(void)
{
	return blockIdx.x;
}

DEV_FN uint32_t dev_n_blocks(void)
{
	return gridDim.x;
}

DEV_FN void dev_drain(void)
{
}

DEV_FN void dev_meet_block(void)
{
	__syncthreads();
}

DEV_FN void dev_refresh(void)
{
}

DEV_FN uint64_t dev_load_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

DEV_FN uint32_t dev_load_word(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

DEV_FN void dev_store_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

DEV_FN void dev_store_word(uint32_t *p, uint32_t v)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

DEV_FN uint64_t dev_load_word64(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

DEV_FN void dev_store_word64(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

DEV_FN void dev_store_early(uint64_t *p, uint64_t v)
{
	dev_store_word64(p, v);
}

DEV_FN struct dev_pair dev_load_pair(const void *p)
{
	struct dev_pair v;

	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(v.v[0]), "=l"(v.v[1])
		     : "l"(p)
		     : "memory");
	return v;
}

DEV_FN void dev_store_pair(void *p, struct dev_pair v)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};"
		     :
		     : "l"(p), "l"(v.v[0]), "l"(v.v[1])
		     : "memory");
}

DEV_FN uint64_t dev_count_up64(uint64_t *p)
{
	uint64_t before;

	asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], 1;"
		     : "=l"(before)
		     : "l"(p)
		     : "memory");
	return before;
}

DEV_FN void dev_note_up64(uint64_t *p)
{
	asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" : : "l"(p) : "memory");
}

DEV_FN uint32_t dev_count_up(uint32_t *p)
{
	uint32_t before;

	asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], 1;"
		     : "=r"(before)
		     : "l"(p)
		     : "memory");
	return before;
}

DEV_FN void dev_fail(struct dev_shared *shared, uint32_t status)
{
	*(volatile uint32_t *)&shared->failed = status;
}

DEV_FN uint32_t dev_failed(const struct dev_shared *shared)
{
	return *(const volatile uint32_t *)&shared->failed;
}

DEV_FN void dev_shared_add(uint32_t *p, uint32_t v)
{
	(void)atomicAdd(p, v);
}

DEV_FN void dev_shared_or(uint32_t *p, uint32_t v)
{
	(void)atomicOr(p, v);
}

DEV_FN uint32_t dev_uniform(uint32_t v)
{
	return v;
}

DEV_FN uint32_t dev_group_max(uint32_t v, uint32_t width)
{
	for (uint32_t distance = 1; distance < width; distance *= 2) {
		uint32_t other = __shfl_xor_sync(0xffffffffu, v, (int)distance);

		v = v > other ? v : other;
	}
	return v;
}

DEV_FN bool dev_group_any(bool v, uint32_t width)
{
	uint32_t first = threadIdx.x & 31 & ~(width - 1);

	return __ballot_sync(0xffffffffu, v) >> first & ((1u << width) - 1);
}

DEV_FN bool dev_step_any(bool v)
{
	return __any_sync(0xffffffffu, v);
}

DEV_FN bool dev_step_some(bool v, uint32_t width)
{
	(void)width;
	return __any_sync(0xffffffffu, v);
}

DEV_FN float dev_exact_mad(float a, float b, float c)
{
	return __fmaf_rn(a, b, c);
}

DEV_FN uint64_t dev_clock(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

DEV_FN void dev_pause(void)
{
}

DEV_FN struct dev_vec16 dev_load16(const void *p)
{
	uint4 v = *(const uint4 *)p;
	struct dev_vec16 out = {{v.x, v.y, v.z, v.w}};

	return out;
}

DEV_FN void dev_store16(void *p, struct dev_vec16 v)
{
	*(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}

DEV_FN struct dev_vec8 dev_load8(const void *p)
{
	uint2 v = *(const uint2 *)p;
	struct dev_vec8 out = {{v.x, v.y}};

	return out;
}

DEV_FN void dev_store8(void *p, struct dev_vec8 v)
{
	*(uint2 *)p = make_uint2(v.w[0], v.w[1]);
}

#define DEV_AS_GLOBAL(type, p) ((type *)(p))

DEV_FN uint32_t dev_bits(float v)
{
	return __float_as_uint(v);
}

DEV_FN float dev_float(uint32_t bits)
{
	return __uint_as_float(bits);
}

DEV_FN uint64_t dev_bits64(double v)
{
	return (uint64_t)__double_as_longlong(v);
}

DEV_FN double dev_double(uint64_t bits)
{
	return __longlong_as_double((long long)bits);
}

DEV_FN uint32_t dev_lowest_bit(uint64_t mask)
{
	return (uint32_t)__ffsll((long long)mask) - 1;
}

#elif defined(DEV_AMD)
/* ---- AMD ---- */

#define DEV_FN     static __attribute__((device, always_inline)) inline
#define DEV_CONST  static __attribute__((device)) const
#define DEV_UNROLL _Pragma("unroll")
#define DEV_ROLL   _Pragma("unroll 1")
#define DEV_STEP   8u
#define DEV_KERNEL(name, type)                                                                     \
	extern "C"                                                                                 \
		__attribute__((global, amdgpu_flat_work_group_size(1, RX_DEV_MAX_THREADS))) void   \
		name(type args)
#define DEV_DENSE_KERNEL(name, type, n) DEV_KERNEL(name, type)
/* Where the arguments are: a table of them is indexed without a copy in private memory. */
#define DEV_CONSTANT                    __attribute__((address_space(4)))
#define DEV_GLOBAL                      __attribute__((address_space(1)))
#define DEV_ARGS(type)                  ((const DEV_CONSTANT type *)__builtin_amdgcn_kernarg_segment_ptr())
#define DEV_SHARED(name)                                                                           \
	__attribute__((shared)) struct dev_shared name##_store;                                    \
	struct dev_shared *const name = &name##_store
#define DEV_SHARED_MORE(type, name)                                                                \
	__attribute__((shared)) type name##_store;                                                 \
	type *const name = &name##_store

typedef const DEV_CONSTANT struct rx_dev_args *dev_args;
typedef const DEV_CONSTANT struct rx_dev_words *dev_words;
typedef const DEV_CONSTANT struct rx_inl_args *dev_inl_args;
typedef const void *const DEV_CONSTANT *dev_table;
typedef uint32_t dev_u32x4 __attribute__((ext_vector_type(4)));
typedef uint32_t dev_u32x2 __attribute__((ext_vector_type(2)));

#define DEV_AS_GLOBAL(type, p) ((DEV_GLOBAL type *)(p))

DEV_FN uint32_t dev_thread(void)
{
	return __builtin_amdgcn_workitem_id_x();
}

DEV_FN uint32_t dev_n_threads(void)
{
	return __builtin_amdgcn_workgroup_size_x();
}

DEV_FN dev_args dev_fresh(dev_args a)
{
	asm volatile("" : "+s"(a));
	return a;
}

DEV_FN bool dev_is_first(void)
{
	uint32_t thread = dev_thread();

	asm volatile("" : "+v"(thread));
	return thread == 0;
}

DEV_FN uint32_t dev_block(void)
{
	uint32_t block = __builtin_amdgcn_workgroup_id_x();

	asm volatile("" : "+s"(block));
	return block;
}

DEV_FN uint32_t dev_n_blocks(void)
{
	return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}

/* The release that follows waits for the stores of its own wavefront only. */
DEV_FN void dev_drain(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
}

DEV_FN void dev_meet_block(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

DEV_FN void dev_refresh(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

DEV_FN uint64_t dev_load_acquire(const uint64_t *p)
{
	return __scoped_atomic_load_n(
		DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN uint32_t dev_load_word(const uint32_t *p)
{
	return __scoped_atomic_load_n(
		DEV_AS_GLOBAL(const uint32_t, p), __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_store_release(uint64_t *p, uint64_t v)
{
	__scoped_atomic_store_n(
		DEV_AS_GLOBAL(uint64_t, p), v, DEV_RELEASE_ORDER, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_store_word(uint32_t *p, uint32_t v)
{
	__scoped_atomic_store_n(
		DEV_AS_GLOBAL(uint32_t, p), v, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN uint64_t dev_load_word64(const uint64_t *p)
{
	return __scoped_atomic_load_n(
		DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_store_word64(uint64_t *p, uint64_t v)
{
	__scoped_atomic_store_n(
		DEV_AS_GLOBAL(uint64_t, p), v, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_store_early(uint64_t *p, uint64_t v)
{
	dev_store_word64(p, v);
}

DEV_FN struct dev_pair dev_load_pair(const void *p)
{
	struct dev_pair v;

	v.v[0] = dev_load_word64((const uint64_t *)p);
	v.v[1] = dev_load_word64((const uint64_t *)p + 1);
	return v;
}

DEV_FN void dev_store_pair(void *p, struct dev_pair v)
{
	dev_store_word64((uint64_t *)p, v.v[0]);
	dev_store_word64((uint64_t *)p + 1, v.v[1]);
}

DEV_FN uint64_t dev_count_up64(uint64_t *p)
{
	return __scoped_atomic_fetch_add(
		DEV_AS_GLOBAL(uint64_t, p), 1ull, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_note_up64(uint64_t *p)
{
	(void)dev_count_up64(p);
}

DEV_FN uint32_t dev_count_up(uint32_t *p)
{
	return __scoped_atomic_fetch_add(
		DEV_AS_GLOBAL(uint32_t, p), 1u, __ATOMIC_ACQ_REL, __MEMORY_SCOPE_SYSTEM);
}

DEV_FN void dev_fail(struct dev_shared *shared, uint32_t status)
{
	__scoped_atomic_store_n(&shared->failed, status, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

DEV_FN uint32_t dev_failed(const struct dev_shared *shared)
{
	return __scoped_atomic_load_n(&shared->failed, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

DEV_FN void dev_shared_add(uint32_t *p, uint32_t v)
{
	(void)__scoped_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

DEV_FN void dev_shared_or(uint32_t *p, uint32_t v)
{
	(void)__scoped_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

DEV_FN uint32_t dev_uniform(uint32_t v)
{
	return __builtin_amdgcn_readfirstlane(v);
}

/* Neighbours, neighbours of those, and for eight the other four, in mirrored order. */
DEV_FN uint32_t dev_group_max(uint32_t v, uint32_t width)
{
	uint32_t other = __builtin_amdgcn_mov_dpp(v, 0xb1, 0xf, 0xf, true);

	v = v > other ? v : other;
	other = __builtin_amdgcn_mov_dpp(v, 0x4e, 0xf, 0xf, true);
	v = v > other ? v : other;
	if (width == 4)
		return v;
	other = __builtin_amdgcn_mov_dpp(v, 0x141, 0xf, 0xf, true);
	return v > other ? v : other;
}

DEV_FN bool dev_group_any(bool v, uint32_t width)
{
	return dev_group_max(v, width) != 0;
}

DEV_FN bool dev_step_any(bool v)
{
	return v;
}

DEV_FN bool dev_step_some(bool v, uint32_t width)
{
	return dev_group_any(v, width);
}

DEV_FN float dev_exact_mad(float a, float b, float c)
{
	return __builtin_fmaf(a, b, c);
}

DEV_FN uint64_t dev_clock(void)
{
	return __builtin_readsteadycounter();
}

DEV_FN void dev_pause(void)
{
	__builtin_amdgcn_s_sleep(1);
}

DEV_FN struct dev_vec16 dev_load16(const void *p)
{
	dev_u32x4 v = *DEV_AS_GLOBAL(const dev_u32x4, p);
	struct dev_vec16 out = {{v.x, v.y, v.z, v.w}};

	return out;
}

DEV_FN void dev_store16(void *p, struct dev_vec16 v)
{
	dev_u32x4 out = {v.w[0], v.w[1], v.w[2], v.w[3]};

	*DEV_AS_GLOBAL(dev_u32x4, p) = out;
}

DEV_FN struct dev_vec8 dev_load8(const void *p)
{
	dev_u32x2 v = *DEV_AS_GLOBAL(const dev_u32x2, p);
	struct dev_vec8 out = {{v.x, v.y}};

	return out;
}

DEV_FN void dev_store8(void *p, struct dev_vec8 v)
{
	dev_u32x2 out = {v.w[0], v.w[1]};

	*DEV_AS_GLOBAL(dev_u32x2, p) = out;
}

DEV_FN uint32_t dev_bits(float v)
{
	return __builtin_bit_cast(uint32_t, v);
}

DEV_FN float dev_float(uint32_t bits)
{
	return __builtin_bit_cast(float, bits);
}

DEV_FN uint64_t dev_bits64(double v)
{
	return __builtin_bit_cast(uint64_t, v);
}

DEV_FN double dev_double(uint64_t bits)
{
	return __builtin_bit_cast(double, bits);
}

DEV_FN uint32_t dev_lowest_bit(uint64_t mask)
{
	return (uint32_t)__builtin_ctzll(mask);
}

#else
/* ---- CPU: the functions that are not here are those of the test shim ---- */

#include <stddef.h>
#include <string.h>

#define DEV_FN    static inline RX_UNUSED
#define DEV_CONST static const
#define DEV_UNROLL
#define DEV_ROLL
#define DEV_STEP                        8u
#define DEV_KERNEL(name, type)          static RX_UNUSED void name(type args)
#define DEV_DENSE_KERNEL(name, type, n) DEV_KERNEL(name, type)
#define DEV_ARGS(type)                  (&args)
#define DEV_AS_GLOBAL(type, p)          ((type *)(p))
#define DEV_SHARED(name)                struct dev_shared *const name = rx_cpu_shared()
#define DEV_SHARED_MORE(type, name)     type *const name = (type *)rx_cpu_shared_more(sizeof(type))

typedef const struct rx_dev_args *dev_args;
typedef const struct rx_dev_words *dev_words;
typedef const struct rx_inl_args *dev_inl_args;
typedef const void *const *dev_table;

/* Provided by whoever runs kernels on threads. */
uint32_t rx_cpu_thread(void);
uint32_t rx_cpu_n_threads(void);
uint32_t rx_cpu_block(void);
uint32_t rx_cpu_n_blocks(void);
void rx_cpu_meet_block(void);
struct dev_shared *rx_cpu_shared(void);
void *rx_cpu_shared_more(size_t bytes); /* one piece per kernel */
uint32_t rx_cpu_group_max(uint32_t v, uint32_t width);
uint64_t rx_cpu_clock(void);
void rx_cpu_pause(void);

DEV_FN uint32_t dev_thread(void)
{
	return rx_cpu_thread();
}

DEV_FN uint32_t dev_n_threads(void)
{
	return rx_cpu_n_threads();
}

DEV_FN dev_args dev_fresh(dev_args a)
{
	return a;
}

DEV_FN bool dev_is_first(void)
{
	return dev_thread() == 0;
}

DEV_FN uint32_t dev_block(void)
{
	return rx_cpu_block();
}

DEV_FN uint32_t dev_n_blocks(void)
{
	return rx_cpu_n_blocks();
}

DEV_FN void dev_drain(void)
{
}

DEV_FN void dev_meet_block(void)
{
	rx_cpu_meet_block();
}

DEV_FN void dev_refresh(void)
{
}

DEV_FN uint64_t dev_load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, DEV_ACQUIRE_ORDER);
}

DEV_FN uint32_t dev_load_word(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

DEV_FN void dev_store_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, DEV_RELEASE_ORDER);
}

DEV_FN void dev_store_word(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

DEV_FN uint64_t dev_load_word64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

DEV_FN void dev_store_word64(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

DEV_FN void dev_store_early(uint64_t *p, uint64_t v)
{
	dev_store_release(p, v);
}

DEV_FN struct dev_pair dev_load_pair(const void *p)
{
	struct dev_pair v;

	v.v[0] = dev_load_word64((const uint64_t *)p);
	v.v[1] = dev_load_word64((const uint64_t *)p + 1);
	return v;
}

DEV_FN void dev_store_pair(void *p, struct dev_pair v)
{
	dev_store_word64((uint64_t *)p, v.v[0]);
	dev_store_word64((uint64_t *)p + 1, v.v[1]);
}

DEV_FN uint64_t dev_count_up64(uint64_t *p)
{
	return __atomic_fetch_add(p, 1u, __ATOMIC_RELAXED);
}

DEV_FN void dev_note_up64(uint64_t *p)
{
	(void)dev_count_up64(p);
}

DEV_FN uint32_t dev_count_up(uint32_t *p)
{
	return __atomic_fetch_add(p, 1u, __ATOMIC_ACQ_REL);
}

DEV_FN void dev_fail(struct dev_shared *shared, uint32_t status)
{
	__atomic_store_n(&shared->failed, status, __ATOMIC_RELAXED);
}

DEV_FN uint32_t dev_failed(const struct dev_shared *shared)
{
	return __atomic_load_n(&shared->failed, __ATOMIC_RELAXED);
}

DEV_FN void dev_shared_add(uint32_t *p, uint32_t v)
{
	(void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

DEV_FN void dev_shared_or(uint32_t *p, uint32_t v)
{
	(void)__atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}

DEV_FN uint32_t dev_uniform(uint32_t v)
{
	return v;
}

DEV_FN uint32_t dev_group_max(uint32_t v, uint32_t width)
{
	return rx_cpu_group_max(v, width);
}

DEV_FN bool dev_group_any(bool v, uint32_t width)
{
	return dev_group_max(v, width) != 0;
}

DEV_FN bool dev_step_any(bool v)
{
	return v;
}

DEV_FN bool dev_step_some(bool v, uint32_t width)
{
	return dev_group_any(v, width);
}

DEV_FN float dev_exact_mad(float a, float b, float c)
{
	return a * b + c;
}

DEV_FN uint64_t dev_clock(void)
{
	return rx_cpu_clock();
}

DEV_FN void dev_pause(void)
{
	rx_cpu_pause();
}

DEV_FN struct dev_vec16 dev_load16(const void *p)
{
	return *(const struct dev_vec16 *)p;
}

DEV_FN void dev_store16(void *p, struct dev_vec16 v)
{
	*(struct dev_vec16 *)p = v;
}

DEV_FN struct dev_vec8 dev_load8(const void *p)
{
	return *(const struct dev_vec8 *)p;
}

DEV_FN void dev_store8(void *p, struct dev_vec8 v)
{
	*(struct dev_vec8 *)p = v;
}

DEV_FN uint32_t dev_bits(float v)
{
	uint32_t bits = 0;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

DEV_FN float dev_float(uint32_t bits)
{
	float v = 0;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

DEV_FN uint64_t dev_bits64(double v)
{
	uint64_t bits = 0;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

DEV_FN double dev_double(uint64_t bits)
{
	double v = 0;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

DEV_FN uint32_t dev_lowest_bit(uint64_t mask)
{
	return (uint32_t)__builtin_ctzll(mask);
}

#endif

/* What is the same for all threads, in a register that they share where there are such. */
DEV_FN uint64_t dev_uniform64(uint64_t v)
{
	return dev_uniform((uint32_t)v) | (uint64_t)dev_uniform((uint32_t)(v >> 32)) << 32;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The kernels, compiled for the CPU, and their names. */
#include "gpu_cpu.h"

#include "../../kernels/device/kernels.hip"

#define KERNEL(name, type)                                                                         \
	static void run_##name(const void *args)                                                   \
	{                                                                                          \
		name(*(const type *)args);                                                         \
	}

#define ALL_KERNELS(DO)                                                                            \
	DO(rx_copy, struct rx_dev_args)                                                            \
	DO(rx_words, struct rx_dev_words)                                                          \
	DO(rx_inl_copy, struct rx_inl_args)                                                        \
	DO(rx_mx_f16, struct rx_dev_args)                                                          \
	DO(rx_mx_f32, struct rx_dev_args)                                                          \
	DO(rx_mx_bf16, struct rx_dev_args)                                                         \
	DO(rx_inl_i8, struct rx_inl_args)                                                          \
	DO(rx_inl_u8, struct rx_inl_args)                                                          \
	DO(rx_inl_i32, struct rx_inl_args)                                                         \
	DO(rx_inl_u32, struct rx_inl_args)                                                         \
	DO(rx_inl_i64, struct rx_inl_args)                                                         \
	DO(rx_inl_u64, struct rx_inl_args)                                                         \
	DO(rx_inl_f16, struct rx_inl_args)                                                         \
	DO(rx_inl_f32, struct rx_inl_args)                                                         \
	DO(rx_inl_f64, struct rx_inl_args)                                                         \
	DO(rx_inl_bf16, struct rx_inl_args)                                                        \
	DO(rx_inl_e4m3, struct rx_inl_args)                                                        \
	DO(rx_inl_e5m2, struct rx_inl_args)                                                        \
	DO(rx_reduce_i8, struct rx_dev_args)                                                       \
	DO(rx_reduce_u8, struct rx_dev_args)                                                       \
	DO(rx_reduce_i32, struct rx_dev_args)                                                      \
	DO(rx_reduce_u32, struct rx_dev_args)                                                      \
	DO(rx_reduce_i64, struct rx_dev_args)                                                      \
	DO(rx_reduce_u64, struct rx_dev_args)                                                      \
	DO(rx_reduce_f16, struct rx_dev_args)                                                      \
	DO(rx_reduce_f32, struct rx_dev_args)                                                      \
	DO(rx_reduce_f64, struct rx_dev_args)                                                      \
	DO(rx_reduce_bf16, struct rx_dev_args)                                                     \
	DO(rx_reduce_e4m3, struct rx_dev_args)                                                     \
	DO(rx_reduce_e5m2, struct rx_dev_args)

ALL_KERNELS(KERNEL)

#define ENTRY(name, type) {#name, run_##name},

static const struct {
	const char *name;
	gpu_cpu_fn fn;
} kernels[] = {ALL_KERNELS(ENTRY)};

gpu_cpu_fn gpu_cpu_find(const char *name)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(kernels); i++) {
		if (strcmp(kernels[i].name, name) == 0)
			return kernels[i].fn;
	}
	return NULL;
}

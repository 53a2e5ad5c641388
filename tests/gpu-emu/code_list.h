/* SPDX-License-Identifier: MIT */
/* What test_gpu_code.c has built in; any file will do. */
GPU_CODE(gfx90a, "config.h")
GPU_CODE(gfx942, "config.h")
GPU_CODE(sm_80, "config.h")
GPU_CODE(sm_87, "config.h")
GPU_CODE(sm_86, "config.h")
GPU_CODE(sm_90, "config.h")
GPU_CODE(compute_80, "config.h")
GPU_CODE(compute_90, "config.h")

# SPDX-License-Identifier: MIT
# Tables, plans and host kernels; depends on shm/ alone.

noinst_LTLIBRARIES += librx_kernels.la librx_fold_scalar.la

librx_kernels_la_SOURCES = \
	kernels/backend_load.c \
	kernels/backend_load.h \
	kernels/codec/mx_isa.h \
	kernels/codec/mx_portable.c \
	kernels/codec/mxfp8.c \
	kernels/codec/mxfp8.h \
	kernels/codec/mxfp8_def.h \
	kernels/codec/mxint8_def.h \
	kernels/coll_counts.c \
	kernels/coll_counts.h \
	kernels/coll_extent.c \
	kernels/coll_extent.h \
	kernels/coll_plan.c \
	kernels/coll_plan.h \
	kernels/coll_types.c \
	kernels/coll_types.h \
	kernels/device/device_abi.h \
	kernels/device_plan.c \
	kernels/device_plan.h \
	kernels/host/convert.c \
	kernels/host/convert.h \
	kernels/host/copy.c \
	kernels/host/copy.h \
	kernels/host/float_env.h \
	kernels/host/fold.h \
	kernels/host/host_coll.c \
	kernels/host/host_coll.h \
	kernels/host/host_lowprec.c \
	kernels/host/host_lowprec.h \
	kernels/host/reduce.c \
	kernels/host/reduce_small.c \
	kernels/host/reduce_small.h \
	kernels/host/reduce.h \
	kernels/precision.c \
	kernels/precision.h \
	kernels/precision_check.c \
	kernels/precision_check.h \
	kernels/rx_backend.h
librx_kernels_la_LIBADD = librx_fold_scalar.la

# One source, once for each instruction set that may be chosen at run time.
fold_sources = \
	kernels/host/fold.h \
	kernels/host/fold_isa.c \
	kernels/host/fold_type.h \
	kernels/host/vec.h \
	kernels/host/vec_float.h

librx_fold_scalar_la_SOURCES = $(fold_sources)
librx_fold_scalar_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_FOLD_TABLE=rx_fold_scalar

if HAVE_X86
noinst_LTLIBRARIES += librx_fold_avx2.la librx_fold_avx512.la
librx_kernels_la_LIBADD += librx_fold_avx2.la librx_fold_avx512.la

librx_fold_avx2_la_SOURCES = $(fold_sources)
librx_fold_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_FOLD_TABLE=rx_fold_avx2 -DRX_FOLD_AVX2
librx_fold_avx2_la_CFLAGS = $(AM_CFLAGS) $(RX_FOLD_CFLAGS) -mavx2 -mf16c

librx_fold_avx512_la_SOURCES = $(fold_sources)
librx_fold_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_FOLD_TABLE=rx_fold_avx512 -DRX_FOLD_AVX512
librx_fold_avx512_la_CFLAGS = $(AM_CFLAGS) $(RX_FOLD_CFLAGS) \
	-mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

noinst_LTLIBRARIES += librx_mx_avx2.la
librx_kernels_la_LIBADD += librx_mx_avx2.la

librx_mx_avx2_la_SOURCES = \
	kernels/codec/mx_avx2.c \
	kernels/codec/mx_isa.h \
	kernels/host/vec.h
librx_mx_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_FOLD_AVX2
librx_mx_avx2_la_CFLAGS = $(librx_fold_avx2_la_CFLAGS)
endif

if HAVE_AARCH64
noinst_LTLIBRARIES += librx_fold_neon.la
librx_kernels_la_LIBADD += librx_fold_neon.la

librx_fold_neon_la_SOURCES = $(fold_sources)
librx_fold_neon_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_FOLD_TABLE=rx_fold_neon -DRX_FOLD_NEON
endif

# The floating point environment is libm's business where it is not a control word of SSE.
if !HAVE_X86
librx_kernels_la_LIBADD += -lm
endif

include kernels/gpu/local.mk

# SPDX-License-Identifier: MIT
# Benchmarks: built and run by `make bench`, not by `make check`. bench.sh compiles the MPI side.

bench_programs = \
	tests/perf/bench_mxfp8 \
	tests/perf/bench_nccl \
	tests/perf/bench_reduce \
	tests/perf/copy_bandwidth \
	tests/perf/idle_sessions

EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += \
	tests/perf/bench_mxfp8$(EXEEXT) \
	tests/perf/bench_nccl$(EXEEXT) \
	tests/perf/bench_reduce$(EXEEXT) \
	tests/perf/copy_bandwidth$(EXEEXT) \
	tests/perf/idle_sessions$(EXEEXT)
EXTRA_DIST += \
	tests/perf/bench.sh \
	tests/perf/gloo_allreduce.py \
	tests/perf/idle.sh \
	tests/perf/mpi_coll.c \
	tests/perf/plot.sh \
	tests/perf/plot_mxfp8.sh \
	tests/perf/report.py

tests_perf_bench_mxfp8_SOURCES = tests/perf/bench_mxfp8.c
tests_perf_bench_mxfp8_LDADD = librx_kernels.la

tests_perf_bench_nccl_SOURCES = tests/perf/bench_nccl.c
tests_perf_bench_nccl_LDADD = client/nccl/libnccl.la librcclx.la

tests_perf_bench_reduce_SOURCES = tests/perf/bench_reduce.c
tests_perf_bench_reduce_LDADD = librx_kernels.la

tests_perf_copy_bandwidth_SOURCES = tests/perf/copy_bandwidth.c
tests_perf_copy_bandwidth_LDADD = librx_kernels.la -lpthread

tests_perf_idle_sessions_SOURCES = tests/perf/idle_sessions.c
tests_perf_idle_sessions_LDADD = librcclx.la

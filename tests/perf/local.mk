# SPDX-License-Identifier: MIT
# Benchmarks: built and run by `make bench`, not by `make check`. bench.sh compiles the MPI side.

bench_programs = tests/perf/bench_reduce tests/perf/idle_sessions

EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += tests/perf/bench_reduce$(EXEEXT) tests/perf/idle_sessions$(EXEEXT)
EXTRA_DIST += tests/perf/bench.sh tests/perf/mpi_allreduce.c

tests_perf_bench_reduce_SOURCES = tests/perf/bench_reduce.c
tests_perf_bench_reduce_LDADD = librx_kernels.la

tests_perf_idle_sessions_SOURCES = tests/perf/idle_sessions.c
tests_perf_idle_sessions_LDADD = librcclx.la

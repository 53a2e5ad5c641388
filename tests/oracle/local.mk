# SPDX-License-Identifier: MIT
# Expected results, for tests; users link librx_kernels.la and -lm too.

check_LTLIBRARIES += librx_oracle.la

librx_oracle_la_SOURCES = \
	tests/oracle/oracle.c \
	tests/oracle/oracle.h \
	tests/oracle/oracle_lowprec.c \
	tests/oracle/oracle_lowprec.h

# SPDX-License-Identifier: MIT
# Random work under kills and stops; RCCLX_STRESS_SECONDS and RCCLX_STRESS_SEED by hand.

check_PROGRAMS += tests/stress/stress
TESTS += tests/stress/stress

tests_stress_stress_SOURCES = \
	tests/stress/member.c \
	tests/stress/step.c \
	tests/stress/stress.c \
	tests/stress/stress.h
tests_stress_stress_LDADD = $(integration_libs)

# SPDX-License-Identifier: MIT
# Base and shared memory; depends on libc alone.

noinst_LTLIBRARIES += librx_shm.la

librx_shm_la_SOURCES = \
	shm/rx_base.h \
	shm/rx_cleanup.h \
	shm/rx_clock.h \
	shm/rx_fabric.c \
	shm/rx_fabric.h \
	shm/rx_fabric_abi.h \
	shm/rx_gate.h \
	shm/rx_gate_abi.h \
	shm/rx_idmap.c \
	shm/rx_idmap.h \
	shm/rx_list.h \
	shm/rx_log.c \
	shm/rx_log.h \
	shm/rx_map.c \
	shm/rx_map.h \
	shm/rx_memfd.c \
	shm/rx_memfd.h \
	shm/rx_precision_abi.h \
	shm/rx_result.h \
	shm/rx_ring.c \
	shm/rx_ring.h \
	shm/rx_ring_abi.h \
	shm/rx_tuning_abi.h \
	shm/rx_wake.c \
	shm/rx_wake.h

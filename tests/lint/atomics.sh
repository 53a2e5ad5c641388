#!/bin/bash
# SPDX-License-Identifier: MIT
# Fences and inline assembly live where shared memory is defined, and nowhere else; no volatile.
# What makes a GPU's memory operations of C, kernels/device/device.h, is its own place for all that.
# kernels/gpu/gpu_code.c has the assembler include files.
. "$(dirname "$0")/lib.sh"
bad=0

if grep -nHE 'atomic_thread_fence|__sync_synchronize|__atomic_thread_fence' -r shm proto kernels client daemon --include='*.[ch]' |
	grep -vE '^shm/rx_(ring|wake|fabric)\.[ch]:'; then
	echo "fences belong in shm/rx_ring, shm/rx_wake and shm/rx_fabric"
	bad=1
fi
if grep -nHwE '__asm__|asm' -r shm proto kernels client daemon --include='*.[ch]' | grep -vE '^(shm/rx_wake\.h|kernels/device/(device|dev_convert)\.h|kernels/gpu/gpu_code\.c):'; then
	echo "inline assembly"
	bad=1
fi
if grep -nHw volatile -r shm proto kernels client daemon --include='*.[ch]' | grep -vE 'sig_atomic_t|^kernels/device/device\.h:'; then
	echo "volatile is not for shared memory"
	bad=1
fi
exit $bad

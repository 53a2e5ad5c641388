# SPDX-License-Identifier: MIT
# GPU kernels: one source for AMD, NVIDIA and threads of the CPU.

device_sources = \
	kernels/device/copy.hip \
	kernels/device/dev_convert.h \
	kernels/device/dev_copy.h \
	kernels/device/dev_core.h \
	kernels/device/dev_fold.h \
	kernels/device/dev_reduce.h \
	kernels/device/device.h \
	kernels/device/kernels.hip \
	kernels/device/reduce.hip
EXTRA_DIST += $(device_sources)

# SPDX-License-Identifier: MIT
# GPU kernels: one source for AMD, NVIDIA and threads of the CPU. For GPUs it becomes one object a
# target, and a list of these that kernels/gpu/gpu_code.c builds in.

device_sources = \
	kernels/device/copy.hip \
	kernels/device/dev_convert.h \
	kernels/device/dev_copy.h \
	kernels/device/dev_core.h \
	kernels/device/dev_fold.h \
	kernels/device/dev_inline.h \
	kernels/device/dev_inline_type.h \
	kernels/device/dev_mx.h \
	kernels/device/dev_mx_type.h \
	kernels/device/dev_reduce.h \
	kernels/device/dev_types.h \
	kernels/device/dev_value.h \
	kernels/device/dev_value_type.h \
	kernels/device/device.h \
	kernels/device/inline.hip \
	kernels/device/kernels.hip \
	kernels/device/mx.hip \
	kernels/device/reduce.hip
EXTRA_DIST += $(device_sources) kernels/device/inline_abi.h

device_inputs = $(device_sources) kernels/device/device_abi.h kernels/device/inline_abi.h \
	kernels/coll_types.h
hip_objects = $(hip_archs:%=kernels/device/%.co)
cuda_objects = $(patsubst %,kernels/device/%.code,$(cuda_archs) $(cuda_ptx))
CLEANFILES += $(hip_objects) $(cuda_objects) kernels/device/flags \
	kernels/device/code_hip.inc kernels/device/code_cuda.inc

# What else an object depends on; written again only if it is something new.
gpu_flags = '$(HIP_CLANG) $(HIP_FLAGS); $(NVCC) $(CUDA_FLAGS)'
kernels/device/flags: config.status
	@$(MKDIR_P) kernels/device && echo $(gpu_flags) >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

kernels/device/gfx%.co: $(device_inputs) kernels/device/flags
	$(AM_V_GEN)$(HIP_CLANG) $(HIP_FLAGS) --offload-arch=gfx$* $(srcdir)/kernels/device/kernels.hip -o $@

kernels/device/sm_%.code: $(device_inputs) kernels/device/flags
	$(AM_V_GEN)$(NVCC) $(CUDA_FLAGS) -cubin -arch=sm_$* $(srcdir)/kernels/device/kernels.hip -o $@

kernels/device/compute_%.code: $(device_inputs) kernels/device/flags
	$(AM_V_GEN)$(NVCC) $(CUDA_FLAGS) -ptx -arch=compute_$* $(srcdir)/kernels/device/kernels.hip -o $@

kernels/device/code_hip.inc: $(hip_objects)
	$(AM_V_GEN)for o in $(hip_objects); do b=$${o##*/}; echo "GPU_CODE($${b%.*}, \"$$o\")"; done >$@

kernels/device/code_cuda.inc: $(cuda_objects)
	$(AM_V_GEN)for o in $(cuda_objects); do b=$${o##*/}; echo "GPU_CODE($${b%.*}, \"$$o\")"; done >$@

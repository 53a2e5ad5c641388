# SPDX-License-Identifier: MIT
# Compilers for GPU kernels. Results: HIP_CLANG and hip_archs, NVCC and cuda_archs; empty: none.

# The probe needs what kernels/device/device.h needs; -nogpulib and so on as in its local.mk.
HIP_FLAGS="-x hip --offload-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -mcode-object-version=5 -O3 -fno-unroll-loops -ffp-contract=off"
CUDA_FLAGS="-x cu -std=c++17 -O3 --fmad=false"
AC_SUBST([HIP_FLAGS])
AC_SUBST([CUDA_FLAGS])

# RX_HIP_COMPILES(CLANG, ARCH, [IF-TRUE], [IF-FALSE])
AC_DEFUN([RX_HIP_COMPILES], [
	cat >conftest.hip <<'RX_EOF'
extern "C" __attribute__((global)) void probe(unsigned long *p)
{
	p[[__builtin_amdgcn_workitem_id_x()]] = __builtin_readsteadycounter();
	__scoped_atomic_store_n(p, 1ul, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
}
RX_EOF
	AS_IF([AC_TRY_COMMAND(["$1" $HIP_FLAGS --offload-arch=$2 conftest.hip -o conftest.co >&AS_MESSAGE_LOG_FD 2>&1])], [$3], [$4])
	rm -f conftest.hip conftest.co])

# RX_CUDA_COMPILES(NVCC, ARCH, [IF-TRUE], [IF-FALSE])
AC_DEFUN([RX_CUDA_COMPILES], [
	echo 'extern "C" __global__ void probe(int *p) { *p = 1; }' >conftest.cu
	AS_IF([AC_TRY_COMMAND(["$1" $CUDA_FLAGS -cubin -arch=$2 conftest.cu -o conftest.cubin >&AS_MESSAGE_LOG_FD 2>&1])], [$3], [$4])
	rm -f conftest.cu conftest.cubin])

# RX_GPU_ARCHS(RESULT, VARIABLE, COMPILER, DEFAULT, PROBE): which of them compile
AC_DEFUN([RX_GPU_ARCHS], [
	$1=
	for arch in ${$2:-$4}; do
		$5([$3], [$arch], [$1="$[]$1 $arch"],
			[AS_IF([test -n "$[]$2"], [AC_MSG_ERROR([$2: $3 cannot compile for $arch (config.log says why)])])])
	done])

AC_DEFUN([RX_WITH_HIP], [
	AC_ARG_WITH([hip], [AS_HELP_STRING([--with-hip@<:@=PATH@:>@],
		[kernels for AMD GPUs; PATH: a clang, or ROCm's folder; default: if a clang that can is found])],
		[], [with_hip=auto])
	AC_ARG_VAR([HIP_ARCHS], [AMD targets to compile kernels for; default: those of gfx90a gfx942 gfx950 that the compiler knows])
	HIP_CLANG=
	hip_archs=
	AS_CASE([$with_hip],
		[no], [hip_candidates=],
		[auto|yes], [hip_candidates="amdclang /opt/rocm/llvm/bin/clang /opt/rocm/lib/llvm/bin/clang clang-24 clang-23 clang-22 clang-21 clang-20 clang-19 clang"],
		[AS_IF([test -d "$with_hip"],
			[hip_candidates="$with_hip/llvm/bin/clang $with_hip/lib/llvm/bin/clang $with_hip/bin/clang"],
			[hip_candidates=$with_hip])])
	AS_IF([test -n "$hip_candidates"], [
		AC_MSG_CHECKING([for a clang that compiles for AMD GPUs])
		for candidate in $hip_candidates; do
			HIP_CLANG=`command -v $candidate` || continue
			RX_HIP_COMPILES([$HIP_CLANG], [gfx942], [break])
			HIP_CLANG=
		done
		AC_MSG_RESULT([${HIP_CLANG:-no}])])
	AS_IF([test -n "$HIP_CLANG"], [RX_GPU_ARCHS([hip_archs], [HIP_ARCHS], [$HIP_CLANG], [gfx90a gfx942 gfx950], [RX_HIP_COMPILES])])
	AS_IF([test -z "$HIP_CLANG" && test "$with_hip" != no && test "$with_hip" != auto], [
		AC_MSG_ERROR([--with-hip: no clang (19 or later, with its own ld.lld) compiles for AMD GPUs; on Debian:
    apt-get install clang-22 lld-22
tried: $hip_candidates])])
	HIP_OBJDUMP=
	AS_IF([test -n "$HIP_CLANG"], [HIP_OBJDUMP=`$HIP_CLANG -print-prog-name=llvm-objdump`])
	AC_SUBST([HIP_CLANG])
	AC_SUBST([HIP_OBJDUMP])
	AC_SUBST([hip_archs])
	AM_CONDITIONAL([HAVE_HIP_CODE], [test -n "$hip_archs"])])

AC_DEFUN([RX_WITH_CUDA], [
	AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=PATH@:>@],
		[kernels for NVIDIA GPUs; PATH: nvcc, or CUDA's folder; default: if nvcc is found])],
		[], [with_cuda=auto])
	AC_ARG_VAR([CUDA_ARCHS], [NVIDIA targets to compile kernels for; default: those of sm_80 sm_90 that the compiler knows, and PTX of the last one for later GPUs])
	NVCC=
	cuda_archs=
	AS_CASE([$with_cuda],
		[no], [cuda_candidates=],
		[auto|yes], [cuda_candidates="nvcc /usr/local/cuda/bin/nvcc"],
		[AS_IF([test -d "$with_cuda"], [cuda_candidates=$with_cuda/bin/nvcc], [cuda_candidates=$with_cuda])])
	AS_IF([test -n "$cuda_candidates"], [
		AC_MSG_CHECKING([for nvcc])
		for candidate in $cuda_candidates; do
			NVCC=`command -v $candidate` || continue
			RX_CUDA_COMPILES([$NVCC], [sm_80], [break], [
			RX_CUDA_COMPILES([$NVCC], [sm_90], [break])])
			NVCC=
		done
		AC_MSG_RESULT([${NVCC:-no}])])
	AS_IF([test -n "$NVCC"], [RX_GPU_ARCHS([cuda_archs], [CUDA_ARCHS], [$NVCC], [sm_80 sm_90], [RX_CUDA_COMPILES])])
	AS_IF([test -z "$NVCC" && test "$with_cuda" != no && test "$with_cuda" != auto], [
		AC_MSG_ERROR([--with-cuda: no nvcc (of CUDA 11.8 or later) that works was found; install the CUDA toolkit, or say where it is: --with-cuda=/usr/local/cuda
tried: $cuda_candidates])])
	AC_SUBST([NVCC])
	AC_SUBST([cuda_archs])
	AM_CONDITIONAL([HAVE_CUDA_CODE], [test -n "$cuda_archs"])
	# For GPUs that none of these are for: the driver compiles it.
	cuda_ptx=
	for arch in $cuda_archs; do cuda_ptx=compute_${arch#sm_}; done
	AC_SUBST([cuda_ptx])])

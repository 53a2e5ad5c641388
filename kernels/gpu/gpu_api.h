/* SPDX-License-Identifier: MIT */
/*
 * HIP and CUDA under one set of names: the functions that the plugin calls, their symbols in the
 * runtime's library, and the numbers that are not the same in both.
 *
 * Declared here, so that the plugins build without either; tests/lint/gpu_api.sh compares with the
 * real headers where they are installed. CUDA is used through its driver's interface. Contexts:
 * HIP knows devices by number, CUDA needs a context, so gpu_device_enter() and others differ.
 */
#ifndef RX_GPU_API_H
#define RX_GPU_API_H

#include "../../shm/rx_base.h"

#if defined(RX_GPU_HIP)
#define GPU_NAME            "hip"
#define GPU_PICK(cuda, hip) hip
#define GPU_ONLY_CUDA(...)
#define GPU_ONLY_HIP(...) __VA_ARGS__
#elif defined(RX_GPU_CUDA)
#define GPU_NAME            "cuda"
#define GPU_PICK(cuda, hip) cuda
#define GPU_ONLY_CUDA(...)  __VA_ARGS__
#define GPU_ONLY_HIP(...)
#else
#error "compile with -DRX_GPU_HIP or -DRX_GPU_CUDA"
#endif

struct gpu_ipc_handle {
	uint8_t bytes[64];
};

/* What a device may do with mapped virtual memory. */
struct gpu_access {
	int32_t location_type;
	int32_t location_id;
	int32_t flags;
};

#define GPU_LOCATION_DEVICE       1
#define GPU_ACCESS_READ_WRITE     3
#define GPU_HANDLE_TYPE_FD        1
#define GPU_IPC_LAZY_PEER         1
#define GPU_HOST_PORTABLE_MAPPED  3
#define GPU_LAUNCH_ARGS           1
#define GPU_LAUNCH_ARGS_BYTES     2
#define GPU_LAUNCH_END            GPU_PICK(0, 3)
#define GPU_POINTER_BLOCK_ID      20 /* CUDA */
#define GPU_STREAM_NON_BLOCKING   1
#define GPU_CAPTURE_THREAD_LOCAL  1
#define GPU_WAIT_GEQ              0
#define GPU_WAIT_EQ               1
#define GPU_ALLOC_FINE_GRAINED    1 /* HIP */
#define GPU_ALLOC_UNCACHED        3 /* HIP */
#define GPU_MEMCPY_DEFAULT        4 /* HIP */
#define GPU_PEER_ATOMICS          GPU_PICK(3, 2)
#define GPU_ATTR_UNITS            GPU_PICK(16, 63)
#define GPU_ATTR_WARP             GPU_PICK(10, 87)
#define GPU_ATTR_STREAM_MEM       GPU_PICK(122, 10013)
#define GPU_ATTR_WALL_CLOCK       10017 /* HIP, newer than what is checked with */
#define GPU_ATTR_MAJOR            75    /* CUDA */
#define GPU_ATTR_MINOR            76    /* CUDA */
#define GPU_ATTR_FD               103   /* CUDA */
#define GPU_ATTR_MPS              133   /* CUDA, from 12.4 on */
#define GPU_POINTER_CONTEXT       1
#define GPU_POINTER_TYPE          2
#define GPU_POINTER_ID            7
#define GPU_POINTER_MANAGED       8
#define GPU_POINTER_DEVICE        9
#define GPU_POINTER_IPC           10
#define GPU_POINTER_POOL          17
#define GPU_MEMORY_TYPE_DEVICE    2
#define GPU_MEMORY_TYPE_DEVICE_V5 1 /* HIP before 6.0 */

/* Results that mean something to us; the same numbers in both. */
enum gpu_native {
	GPU_SUCCESS = 0,
	GPU_INVALID_VALUE = 1,
	GPU_OUT_OF_MEMORY = 2,
	GPU_NO_DEVICE = 100,
	GPU_ALREADY_MAPPED = 208,
	GPU_NO_BINARY = 209,
	GPU_NOT_FOUND = 500,
	GPU_NOT_READY = 600,
	GPU_PEER_ALREADY_ENABLED = 704,
	GPU_HOST_ALREADY_REGISTERED = 712,
	GPU_NOT_PERMITTED = 800,
	GPU_NOT_SUPPORTED = 801,
};

/* CUDA's description of a copy of rows. */
struct gpu_rows_cuda {
	size_t from_x;
	size_t from_y;
	int32_t from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x;
	size_t to_y;
	int32_t to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch;
	size_t width;
	size_t height;
};

/*
 * X(member, must it exist, CUDA's symbol, HIP's symbol, parameters): functions that return a
 * result. Device addresses are 64-bit integers here; in the ABIs concerned that is a pointer.
 */
#define GPU_SYMBOLS_COMMON(X)                                                                      \
	X(init, 1, "cuInit", "hipInit", (unsigned int flags))                                      \
	X(version, 1, "cuDriverGetVersion", "hipRuntimeGetVersion", (int *version_p))              \
	X(device_count, 1, "cuDeviceGetCount", "hipGetDeviceCount", (int *n_p))                    \
	X(device_name, 1, "cuDeviceGetName", "hipDeviceGetName", (char *name, int len, int dev))   \
	X(device_uuid, 0, "cuDeviceGetUuid_v2", "hipDeviceGetUuid", (uint8_t * uuid, int dev))     \
	X(device_pci, 1, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId",                            \
		(char *id, int len, int dev))                                                      \
	X(device_memory, 1, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", (size_t * n_p, int dev))   \
	X(device_attribute, 1, "cuDeviceGetAttribute", "hipDeviceGetAttribute",                    \
		(int *value_p, int attribute, int dev))                                            \
	X(can_access, 1, "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer",                        \
		(int *can_p, int dev, int peer))                                                   \
	X(peer_attribute, 0, "cuDeviceGetP2PAttribute", "hipDeviceGetP2PAttribute",                \
		(int *value_p, int attribute, int from, int to))                                   \
	X(pointer_attribute, 1, "cuPointerGetAttribute", "hipPointerGetAttribute",                 \
		(void *value_p, int attribute, uint64_t address))                                  \
	X(address_range, 1, "cuMemGetAddressRange_v2", "hipMemGetAddressRange",                    \
		(uint64_t * base_p, size_t * bytes_p, uint64_t address))                           \
	X(ipc_get, 1, "cuIpcGetMemHandle", "hipIpcGetMemHandle",                                   \
		(struct gpu_ipc_handle * handle_p, uint64_t address))                              \
	X(ipc_open, 1, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle",                             \
		(uint64_t * address_p, struct gpu_ipc_handle handle, unsigned int flags))          \
	X(ipc_close, 1, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", (uint64_t address))         \
	X(vmm_retain, 0, "cuMemRetainAllocationHandle", "hipMemRetainAllocationHandle",            \
		(uint64_t * handle_p, uint64_t address))                                           \
	X(vmm_export, 0, "cuMemExportToShareableHandle", "hipMemExportToShareableHandle",          \
		(void *fd_p, uint64_t handle, int type, unsigned long long flags))                 \
	X(vmm_import, 0, "cuMemImportFromShareableHandle", "hipMemImportFromShareableHandle",      \
		(uint64_t * handle_p, uintptr_t fd, int type))                                     \
	X(vmm_reserve, 0, "cuMemAddressReserve", "hipMemAddressReserve",                           \
		(uint64_t * address_p, size_t bytes, size_t align, uint64_t hint,                  \
			unsigned long long flags))                                                 \
	X(vmm_map, 0, "cuMemMap", "hipMemMap",                                                     \
		(uint64_t address, size_t bytes, size_t offset, uint64_t handle,                   \
			unsigned long long flags))                                                 \
	X(vmm_access, 0, "cuMemSetAccess", "hipMemSetAccess",                                      \
		(uint64_t address, size_t bytes, const struct gpu_access *access, size_t n))       \
	X(vmm_unmap, 0, "cuMemUnmap", "hipMemUnmap", (uint64_t address, size_t bytes))             \
	X(vmm_unreserve, 0, "cuMemAddressFree", "hipMemAddressFree",                               \
		(uint64_t address, size_t bytes))                                                  \
	X(vmm_release, 0, "cuMemRelease", "hipMemRelease", (uint64_t handle))                      \
	X(host_register, 1, "cuMemHostRegister_v2", "hipHostRegister",                             \
		(void *memory, size_t bytes, unsigned int flags))                                  \
	X(host_address, 1, "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer",              \
		(uint64_t * address_p, void *memory, unsigned int flags))                          \
	X(host_unregister, 1, "cuMemHostUnregister", "hipHostUnregister", (void *memory))          \
	X(mem_alloc, 1, "cuMemAlloc_v2", "hipMalloc", (uint64_t * address_p, size_t bytes))        \
	X(mem_free, 1, "cuMemFree_v2", "hipFree", (uint64_t address))                              \
	X(mem_set, 1, "cuMemsetD8Async", "hipMemsetD8Async",                                       \
		(uint64_t address, unsigned char value, size_t bytes, void *stream))               \
	X(stream_range, 1, "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange",       \
		(int *least_p, int *greatest_p))                                                   \
	X(stream_create, 1, "cuStreamCreateWithPriority", "hipStreamCreateWithPriority",           \
		(void **stream_p, unsigned int flags, int priority))                               \
	X(stream_destroy, 1, "cuStreamDestroy_v2", "hipStreamDestroy", (void *stream))             \
	X(stream_query, 1, "cuStreamQuery", "hipStreamQuery", (void *stream))                      \
	X(stream_sync, 1, "cuStreamSynchronize", "hipStreamSynchronize", (void *stream))           \
	X(stream_write64, 0, "cuStreamWriteValue64_v2", "hipStreamWriteValue64",                   \
		(void *stream, uint64_t address, uint64_t value, unsigned int flags))              \
	X(stream_capturing, 0, "cuStreamIsCapturing", "hipStreamIsCapturing",                      \
		(void *stream, int *status_p))                                                     \
	X(capture_info, 0, "cuStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2",              \
		(void *stream, int *status_p, unsigned long long *id_p, void **graph_p,            \
			const void **nodes_p, size_t *n_nodes_p))                                  \
	X(capture_mode, 0, "cuThreadExchangeStreamCaptureMode",                                    \
		"hipThreadExchangeStreamCaptureMode", (int *mode))                                 \
	X(capture_begin, 0, "cuStreamBeginCapture_v2", "hipStreamBeginCapture",                    \
		(void *stream, int mode))                                                          \
	X(capture_end, 0, "cuStreamEndCapture", "hipStreamEndCapture",                             \
		(void *stream, void **graph_p))                                                    \
	X(graph_nodes, 0, "cuGraphGetNodes", "hipGraphGetNodes",                                   \
		(void *graph, void **nodes, size_t *n_p))                                          \
	X(graph_destroy, 0, "cuGraphDestroy", "hipGraphDestroy", (void *graph))                    \
	X(module_load, 1, "cuModuleLoadData", "hipModuleLoadData",                                 \
		(void **module_p, const void *image))                                              \
	X(module_unload, 1, "cuModuleUnload", "hipModuleUnload", (void *module))                   \
	X(module_function, 1, "cuModuleGetFunction", "hipModuleGetFunction",                       \
		(void **function_p, void *module, const char *name))                               \
	X(launch, 1, "cuLaunchKernel", "hipModuleLaunchKernel",                                    \
		(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,    \
			unsigned int block_x, unsigned int block_y, unsigned int block_z,          \
			unsigned int shared_bytes, void *stream, void **args, void **extra))

#define GPU_SYMBOLS_CUDA(X)                                                                        \
	X(error_name, 1, "cuGetErrorName", NULL, (int code, const char **name_p))                  \
	X(primary_retain, 1, "cuDevicePrimaryCtxRetain", NULL, (void **context_p, int dev))        \
	X(primary_release, 1, "cuDevicePrimaryCtxRelease_v2", NULL, (int dev))                     \
	X(primary_state, 1, "cuDevicePrimaryCtxGetState", NULL,                                    \
		(int dev, unsigned int *flags_p, int *active_p))                                   \
	X(context_push, 1, "cuCtxPushCurrent_v2", NULL, (void *context))                           \
	X(context_pop, 1, "cuCtxPopCurrent_v2", NULL, (void **context_p))                          \
	X(context_get, 1, "cuCtxGetCurrent", NULL, (void **context_p))                             \
	X(context_device, 0, "cuCtxGetDevice", NULL, (int *dev_p))                                 \
	X(stream_context, 0, "cuStreamGetCtx", NULL, (void *stream, void **context_p))             \
	X(context_peer, 1, "cuCtxEnablePeerAccess", NULL, (void *context, unsigned int flags))     \
	X(copy, 1, "cuMemcpyAsync", NULL,                                                          \
		(uint64_t to, uint64_t from, size_t bytes, void *stream))                          \
	X(copy_rows, 1, "cuMemcpy2DAsync_v2", NULL,                                                \
		(const struct gpu_rows_cuda *rows, void *stream))                                  \
	X(stream_wait64, 0, "cuStreamWaitValue64_v2", NULL,                                        \
		(void *stream, uint64_t address, uint64_t value, unsigned int flags))

#define GPU_SYMBOLS_HIP(X)                                                                         \
	X(properties, 0, NULL, "hipGetDevicePropertiesR0600", (void *properties, int dev))         \
	X(properties_v5, 0, NULL, "hipGetDeviceProperties", (void *properties, int dev))           \
	X(device_set, 1, NULL, "hipSetDevice", (int dev))                                          \
	X(device_get, 1, NULL, "hipGetDevice", (int *dev_p))                                       \
	X(stream_device, 0, NULL, "hipStreamGetDevice", (void *stream, int *dev_p))                \
	X(device_peer, 1, NULL, "hipDeviceEnablePeerAccess", (int peer, unsigned int flags))       \
	X(link_hops, 0, NULL, "hipExtGetLinkTypeAndHopCount",                                      \
		(int from, int to, uint32_t *type_p, uint32_t *hops_p))                            \
	X(alloc_flags, 0, NULL, "hipExtMallocWithFlags",                                           \
		(uint64_t * address_p, size_t bytes, unsigned int flags))                          \
	X(copy, 1, NULL, "hipMemcpyAsync",                                                         \
		(uint64_t to, uint64_t from, size_t bytes, int kind, void *stream))                \
	X(copy_rows, 1, NULL, "hipMemcpy2DAsync",                                                  \
		(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width,     \
			size_t height, int kind, void *stream))                                    \
	X(stream_wait64, 0, NULL, "hipStreamWaitValue64",                                          \
		(void *stream, uint64_t address, uint64_t value, unsigned int flags,               \
			uint64_t mask))

#define GPU_SYMBOLS(X) GPU_SYMBOLS_COMMON(X) GPU_PICK(GPU_SYMBOLS_CUDA, GPU_SYMBOLS_HIP)(X)

#endif

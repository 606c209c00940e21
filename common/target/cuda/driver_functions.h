#ifndef HONE_COMMON_TARGET_CUDA_DRIVER_FUNCTIONS_H_
#define HONE_COMMON_TARGET_CUDA_DRIVER_FUNCTIONS_H_

/* The part of the CUDA driver API that Hone uses, for C++ and for the C of exported networks. It is
   declared here so that a build needs no CUDA package. All names of functions and constants are
   those of NVIDIA's documentation of the driver API, without the prefix. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
namespace hone::cuda {
#endif

typedef int Result;             /* CUresult */
typedef int DeviceNumber;       /* CUdevice */
typedef uint64_t DevicePointer; /* CUdeviceptr */
typedef struct ContextObject* Context;
typedef struct ModuleObject* Module;
typedef struct FunctionObject* Function;
typedef struct StreamObject* Stream;
typedef struct EventObject* Event;
typedef struct GraphObject* Graph;
typedef struct GraphExecObject* GraphExec;
typedef struct Uuid {
  unsigned char bytes[16];
} Uuid;

/* Attributes of devices (CU_DEVICE_ATTRIBUTE_…). */
enum DeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2, /* y and z follow */
  kMaxGridDimX = 5,  /* y and z follow */
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessorCount = 16,
  kIntegrated = 18, /* shares the host's memory */
  kComputeMode = 20,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97
};
enum ComputeMode { kComputeModeProhibited = 2 };

enum {
  kStreamNonBlocking = 1, /* CU_STREAM_…: the stream does not wait for the default stream */
  kCaptureThreadLocal =
      1 /* CU_STREAM_CAPTURE_MODE_…: calls of other threads do not end a capture */
};

/* Attributes of functions (CU_FUNC_ATTRIBUTE_…). */
enum FunctionAttribute {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1, /* declared by the code itself */
  kFunctionMaxDynamicSharedBytes = 8
};

/* Each function with its symbol in the library and its parameters. The symbol may name an older
   version of the function, which old drivers have as well. */
/* clang-format off */
#define HONE_CUDA_FUNCTIONS(F) \
  F(Init, cuInit, unsigned flags) \
  F(DriverGetVersion, cuDriverGetVersion, int* version) \
  F(DeviceGetCount, cuDeviceGetCount, int* count) \
  F(DeviceGet, cuDeviceGet, DeviceNumber* device, int ordinal) \
  F(DeviceGetName, cuDeviceGetName, char* name, int bytes, DeviceNumber device) \
  F(DeviceGetUuid, cuDeviceGetUuid, Uuid* uuid, DeviceNumber device) \
  F(DeviceTotalMem, cuDeviceTotalMem_v2, size_t* bytes, DeviceNumber device) \
  F(DeviceGetAttribute, cuDeviceGetAttribute, int* value, int attribute, DeviceNumber device) \
  F(GetErrorName, cuGetErrorName, Result code, const char** name) \
  F(CtxCreate, cuCtxCreate_v2, Context* context, unsigned flags, DeviceNumber device) \
  F(CtxDestroy, cuCtxDestroy_v2, Context context) \
  F(CtxSetCurrent, cuCtxSetCurrent, Context context) \
  F(CtxPushCurrent, cuCtxPushCurrent_v2, Context context) \
  F(CtxPopCurrent, cuCtxPopCurrent_v2, Context* context) \
  F(ModuleLoadData, cuModuleLoadData, Module* module, const void* image) \
  F(ModuleUnload, cuModuleUnload, Module module) \
  F(ModuleGetFunction, cuModuleGetFunction, Function* function, Module module, const char* name) \
  F(FuncGetAttribute, cuFuncGetAttribute, int* value, int attribute, Function function) \
  F(FuncSetAttribute, cuFuncSetAttribute, Function function, int attribute, int value) \
  F(MemAlloc, cuMemAlloc_v2, DevicePointer* pointer, size_t bytes) \
  F(MemFree, cuMemFree_v2, DevicePointer pointer) \
  F(MemcpyHtoD, cuMemcpyHtoD_v2, DevicePointer to, const void* from, size_t bytes) \
  F(MemcpyDtoH, cuMemcpyDtoH_v2, void* to, DevicePointer from, size_t bytes) \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, DevicePointer to, const void* from, size_t bytes, \
    Stream stream) \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void* to, DevicePointer from, size_t bytes, \
    Stream stream) \
  F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, DevicePointer to, DevicePointer from, size_t bytes, \
    Stream stream) \
  F(MemsetD8, cuMemsetD8_v2, DevicePointer to, unsigned char value, size_t bytes) \
  F(StreamCreate, cuStreamCreate, Stream* stream, unsigned flags) \
  F(StreamDestroy, cuStreamDestroy_v2, Stream stream) \
  F(StreamSynchronize, cuStreamSynchronize, Stream stream) \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, Stream stream, int mode) \
  F(StreamEndCapture, cuStreamEndCapture, Stream stream, Graph* graph) \
  F(GraphDestroy, cuGraphDestroy, Graph graph) \
  F(GraphInstantiate, cuGraphInstantiateWithFlags, GraphExec* exec, Graph graph, \
    unsigned long long flags) \
  F(GraphLaunch, cuGraphLaunch, GraphExec exec, Stream stream) \
  F(GraphExecDestroy, cuGraphExecDestroy, GraphExec exec) \
  F(EventCreate, cuEventCreate, Event* event, unsigned flags) \
  F(EventRecord, cuEventRecord, Event event, Stream stream) \
  F(EventElapsedTime, cuEventElapsedTime, float* milliseconds, Event begin, Event end) \
  F(EventDestroy, cuEventDestroy_v2, Event event) \
  F(LaunchKernel, cuLaunchKernel, Function function, unsigned grid_x, unsigned grid_y, \
    unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
    Stream stream, void** parameters, void** extra)
/* clang-format on */

#ifdef __cplusplus
}  // namespace hone::cuda
#endif

#endif  // HONE_COMMON_TARGET_CUDA_DRIVER_FUNCTIONS_H_

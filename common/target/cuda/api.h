#ifndef HONE_COMMON_TARGET_CUDA_API_H_
#define HONE_COMMON_TARGET_CUDA_API_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

// The part of the CUDA driver API that Hone uses, declared here so that a build needs no CUDA
// package. All names of functions and constants are those of NVIDIA's documentation of the driver
// API, without the prefix.
namespace hone::cuda {

using Result = int;              // CUresult
using DeviceNumber = int;        // CUdevice
using DevicePointer = uint64_t;  // CUdeviceptr
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
struct Uuid {
  unsigned char bytes[16];
};

// Attributes of devices (CU_DEVICE_ATTRIBUTE_…).
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,  // y and z follow
  kMaxGridDimX = 5,   // y and z follow
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessorCount = 16,
  kIntegrated = 18,  // shares the host's memory
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
  kMaxSharedMemoryPerBlockOptin = 97,
};
enum ComputeMode : int { kComputeModeProhibited = 2 };

// CU_STREAM_NON_BLOCKING: the stream does not wait for the default stream.
inline constexpr unsigned kStreamNonBlocking = 1;
// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: calls of other threads do not end a capture.
inline constexpr int kCaptureThreadLocal = 1;

// Attributes of functions (CU_FUNC_ATTRIBUTE_…).
enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,  // declared by the code itself
  kFunctionMaxDynamicSharedBytes = 8,
};

// Each function with its symbol in the library and its parameters. The symbol may name an older
// version of the function, which old drivers have as well.
// clang-format off
#define HONE_CUDA_FUNCTIONS(F) \
  F(Init, cuInit, unsigned flags) \
  F(DriverGetVersion, cuDriverGetVersion, int* version) \
  F(DeviceGetCount, cuDeviceGetCount, int* count) \
  F(DeviceGet, cuDeviceGet, DeviceNumber* device, int ordinal) \
  F(DeviceGetName, cuDeviceGetName, char* name, int bytes, DeviceNumber device) \
  F(DeviceGetUuid, cuDeviceGetUuid, Uuid* uuid, DeviceNumber device) \
  F(DeviceTotalMem, cuDeviceTotalMem_v2, size_t* bytes, DeviceNumber device) \
  F(DeviceGetAttribute, cuDeviceGetAttribute, int* value, int attribute, DeviceNumber device) \
  F(CtxCreate, cuCtxCreate_v2, Context* context, unsigned flags, DeviceNumber device) \
  F(CtxDestroy, cuCtxDestroy_v2, Context context) \
  F(CtxSetCurrent, cuCtxSetCurrent, Context context) \
  F(ModuleLoadData, cuModuleLoadData, Module* module, const void* image) \
  F(ModuleUnload, cuModuleUnload, Module module) \
  F(ModuleGetFunction, cuModuleGetFunction, Function* function, Module module, const char* name) \
  F(FuncGetAttribute, cuFuncGetAttribute, int* value, int attribute, Function function) \
  F(FuncSetAttribute, cuFuncSetAttribute, Function function, int attribute, int value) \
  F(MemAlloc, cuMemAlloc_v2, DevicePointer* pointer, size_t bytes) \
  F(MemFree, cuMemFree_v2, DevicePointer pointer) \
  F(MemcpyHtoD, cuMemcpyHtoD_v2, DevicePointer to, const void* from, size_t bytes) \
  F(MemcpyDtoH, cuMemcpyDtoH_v2, void* to, DevicePointer from, size_t bytes) \
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
// clang-format on

// A table of the driver's functions. The library is opened at run time, so programs start without a
// driver. Tests fill in their own functions.
struct Api {
#define HONE_CUDA_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_MEMBER)
#undef HONE_CUDA_MEMBER
};

// Opens a driver's library, which stays loaded, and initializes the driver. NotFound: the library
// is not installed, lacks a function, or knows no device; the message says what to do. Unavailable:
// the driver refuses to start.
absl::StatusOr<Api> OpenApi(const char* library);

// The newest version of CUDA that the driver of this machine supports, as 1000 · major + 10 ·
// minor; 0 if there is no driver. Does not start the driver.
int DriverVersion();

// The functions of libcuda.so.1, opened once. Errors as for OpenApi.
absl::StatusOr<const Api*> LoadedApi();

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_API_H_

#ifndef HONE_COMMON_TARGET_OPENCL_FUNCTIONS_H_
#define HONE_COMMON_TARGET_OPENCL_FUNCTIONS_H_

/* For C++ and for the C of exported networks. Every driver supports OpenCL 1.2. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* The functions that Hone calls, without "cl". */
/* clang-format off */
#define HONE_OPENCL_FUNCTIONS(F) \
  F(GetPlatformIDs) F(GetPlatformInfo) F(GetDeviceIDs) F(GetDeviceInfo) F(CreateContext) \
  F(ReleaseContext) F(CreateCommandQueue) F(ReleaseCommandQueue) F(CreateProgramWithSource) \
  F(BuildProgram) F(GetProgramBuildInfo) F(ReleaseProgram) F(CreateKernel) F(SetKernelArg) \
  F(GetKernelInfo) F(GetKernelWorkGroupInfo) F(ReleaseKernel) F(CreateBuffer) \
  F(CreateSubBuffer) F(ReleaseMemObject) F(EnqueueReadBuffer) F(EnqueueWriteBuffer) \
  F(EnqueueFillBuffer) F(EnqueueCopyBuffer) F(EnqueueNDRangeKernel) F(Finish) F(GetEventInfo) \
  F(GetEventProfilingInfo) F(ReleaseEvent)
/* clang-format on */

#endif  // HONE_COMMON_TARGET_OPENCL_FUNCTIONS_H_

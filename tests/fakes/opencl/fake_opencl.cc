// libOpenCL.so.1 for tests, with the devices of tests/common/target/opencl/fake_driver.h. They tell
// their properties and may be opened, but run nothing.

#include <cstdlib>

#include "tests/common/target/opencl/fake_driver.h"

namespace {
hone::opencl::Api api;
cl_device_id opened;
}  // namespace

extern "C" {

// Sets the drivers, which must outlive their use.
void hone_fake_opencl_use(const std::vector<hone::opencl::FakePlatform>* platforms) {
  api = hone::opencl::FakeApi(*platforms);
}
// The device of the last context.
cl_device_id hone_fake_opencl_opened() { return opened; }

cl_int clGetPlatformIDs(cl_uint most, cl_platform_id* ids, cl_uint* count) {
  return api.GetPlatformIDs(most, ids, count);
}
cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t size, void* to,
                         size_t* needed) {
  return api.GetPlatformInfo(id, what, size, to, needed);
}
cl_int clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint most, cl_device_id* ids,
                      cl_uint* count) {
  return api.GetDeviceIDs(id, type, most, ids, count);
}
cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void* to,
                       size_t* needed) {
  return api.GetDeviceInfo(id, what, size, to, needed);
}
cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id* devices,
                           void (*)(const char*, const void*, size_t, void*), void*, cl_int* code) {
  opened = devices[0];
  *code = CL_SUCCESS;
  return reinterpret_cast<cl_context>(&opened);
}
cl_int clReleaseContext(cl_context) { return CL_SUCCESS; }

// What must be there, but is not called.
#define UNUSED(name)                       \
  void Unused##name() __asm__("cl" #name); \
  __attribute__((used)) void Unused##name() { std::abort(); }
UNUSED(CreateCommandQueue)
UNUSED(ReleaseCommandQueue)
UNUSED(CreateProgramWithSource)
UNUSED(BuildProgram)
UNUSED(GetProgramBuildInfo)
UNUSED(ReleaseProgram)
UNUSED(CreateKernel)
UNUSED(SetKernelArg)
UNUSED(GetKernelInfo)
UNUSED(GetKernelWorkGroupInfo)
UNUSED(ReleaseKernel)
UNUSED(CreateBuffer)
UNUSED(CreateSubBuffer)
UNUSED(ReleaseMemObject)
UNUSED(EnqueueReadBuffer)
UNUSED(EnqueueWriteBuffer)
UNUSED(EnqueueFillBuffer)
UNUSED(EnqueueCopyBuffer)
UNUSED(EnqueueNDRangeKernel)
UNUSED(Finish)
UNUSED(GetEventInfo)
UNUSED(GetEventProfilingInfo)
UNUSED(ReleaseEvent)

}  // extern "C"

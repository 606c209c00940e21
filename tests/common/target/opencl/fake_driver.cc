#include "tests/common/target/opencl/fake_driver.h"

#include <cstring>

namespace hone::opencl {
namespace {

const std::vector<FakePlatform>* fake_platforms = nullptr;
cl_int fake_error = CL_SUCCESS;

cl_int Answer(const std::string& bytes, size_t size, void* to, size_t* needed) {
  if (needed != nullptr) *needed = bytes.size();
  if (to == nullptr) return CL_SUCCESS;
  if (size < bytes.size()) return CL_INVALID_VALUE;
  std::memcpy(to, bytes.data(), bytes.size());
  return CL_SUCCESS;
}

cl_int GetPlatforms(cl_uint most, cl_platform_id* ids, cl_uint* count) {
  if (fake_error != CL_SUCCESS) return fake_error;
  *count = static_cast<cl_uint>(fake_platforms->size());
  for (cl_uint i = 0; i < *count && i < most; ++i) {
    ids[i] = reinterpret_cast<cl_platform_id>(const_cast<FakePlatform*>(&(*fake_platforms)[i]));
  }
  return CL_SUCCESS;
}

cl_int GetPlatformProperty(cl_platform_id id, cl_platform_info, size_t size, void* to,
                           size_t* needed) {
  return Answer(reinterpret_cast<const FakePlatform*>(id)->name + '\0', size, to, needed);
}

cl_int GetDevices(cl_platform_id id, cl_device_type, cl_uint most, cl_device_id* ids,
                  cl_uint* count) {
  const auto* const platform = reinterpret_cast<const FakePlatform*>(id);
  if (platform->error != CL_SUCCESS) return platform->error;
  *count = static_cast<cl_uint>(platform->devices.size());
  for (cl_uint i = 0; i < *count && i < most; ++i) {
    ids[i] = reinterpret_cast<cl_device_id>(const_cast<FakeDevice*>(&platform->devices[i]));
  }
  return *count > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

cl_int GetDeviceProperty(cl_device_id id, cl_device_info property, size_t size, void* to,
                         size_t* needed) {
  const auto* const device = reinterpret_cast<const FakeDevice*>(id);
  if (device->error != CL_SUCCESS) return device->error;
  if (property == CL_DEVICE_TYPE) return Answer(Bytes(device->type), size, to, needed);
  const auto found = device->properties.find(property);
  if (found == device->properties.end()) return CL_INVALID_VALUE;
  return Answer(found->second, size, to, needed);
}

}  // namespace

FakeDevice MakeFakeDevice(cl_device_type type, const std::string& name) {
  const auto text = [](const char* words) { return std::string(words) + '\0'; };
  return {.type = type,
          .properties = {
              {CL_DEVICE_NAME, name + '\0'},
              {CL_DEVICE_VENDOR, text("a vendor")},
              {CL_DRIVER_VERSION, text("1.2.3")},
              {CL_DEVICE_PROFILE, text("FULL_PROFILE")},
              {CL_DEVICE_VERSION, text("OpenCL 3.0 fake")},
              {CL_DEVICE_EXTENSIONS, text("cl_khr_icd cl_khr_fp16")},
              {0x1033,  // of halves
               Bytes<cl_device_fp_config>(CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST)},
              {CL_DEVICE_MAX_COMPUTE_UNITS, Bytes<cl_uint>(10)},
              {CL_DEVICE_MAX_WORK_GROUP_SIZE, Bytes<size_t>(1024)},
              {CL_DEVICE_LOCAL_MEM_SIZE, Bytes<cl_ulong>(48 << 10)},
              {CL_DEVICE_LOCAL_MEM_TYPE, Bytes<cl_device_local_mem_type>(CL_LOCAL)},
              {CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, Bytes<cl_ulong>(4 << 20)},
              {CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, Bytes<cl_uint>(128)}}};
}

Api FakeApi(const std::vector<FakePlatform>& platforms, cl_int error) {
  fake_platforms = &platforms;
  fake_error = error;
  Api api;
  api.GetPlatformIDs = GetPlatforms;
  api.GetPlatformInfo = GetPlatformProperty;
  api.GetDeviceIDs = GetDevices;
  api.GetDeviceInfo = GetDeviceProperty;
  return api;
}

}  // namespace hone::opencl

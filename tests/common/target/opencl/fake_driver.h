#ifndef HONE_TESTS_COMMON_TARGET_OPENCL_FAKE_DRIVER_H_
#define HONE_TESTS_COMMON_TARGET_OPENCL_FAKE_DRIVER_H_

#include <map>
#include <string>
#include <vector>

#include "common/target/opencl/api.h"

namespace hone::opencl {

// Drivers and devices that a test describes. Properties are the bytes that a driver returns.
struct FakeDevice {
  cl_device_type type = CL_DEVICE_TYPE_GPU;
  std::map<cl_device_info, std::string> properties;
  cl_int error = CL_SUCCESS;  // of every question
};
struct FakePlatform {
  std::string name;
  std::vector<FakeDevice> devices;
  cl_int error = CL_SUCCESS;  // of the list of devices
};

// The bytes of a property.
template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A device with a name and what every driver tells.
FakeDevice MakeFakeDevice(cl_device_type type, const std::string& name);

// Functions that answer from `platforms`, which must outlive their use, or fail to list the drivers
// with `error`. Functions beyond detection are missing. One at a time.
Api FakeApi(const std::vector<FakePlatform>& platforms, cl_int error = CL_SUCCESS);

}  // namespace hone::opencl

#endif  // HONE_TESTS_COMMON_TARGET_OPENCL_FAKE_DRIVER_H_

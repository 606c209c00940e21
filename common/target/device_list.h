#ifndef HONE_COMMON_TARGET_DEVICE_LIST_H_
#define HONE_COMMON_TARGET_DEVICE_LIST_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"

namespace hone::target {

// A device of a machine that a worker can own.
struct ListedDevice {
  std::string device;  // "cpu", "cuda:0", "opencl:0": its name for --device
  std::string name;    // as reported by its driver
  std::string driver;  // vendor and version; "" for the CPU
  Target target;
  std::string problem = {};  // why it cannot be used; "": it can
  std::string warning = {};  // what disturbs measurements, such as memory errors; may be ""

  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};

// The devices of a machine. hone-runner, the only program that loads drivers, prints the list as
// JSON; others read it.
struct DeviceList {
  std::vector<ListedDevice> devices;  // the CPU first
  // The reason for each GPU interface ("cuda", "opencl") without a device.
  std::map<std::string, std::string> problems;

  // One line. Bytes of names that are not UTF-8 are replaced.
  std::string ToJson() const;
  // InvalidArgument: the text is not a list of devices; the message says why.
  static absl::StatusOr<DeviceList> FromJson(absl::string_view text);

  // Returns the device with the name "cpu", "cuda:N" or "opencl:N"; "cuda" and "opencl" mean N = 0.
  // InvalidArgument: the name is malformed, or the number too large; the message lists the devices.
  // FailedPrecondition: the machine has no such device, or it cannot be used; the message says why.
  absl::StatusOr<ListedDevice> Find(absl::string_view name) const;
};

// A driver interface through which programs find the GPUs of a machine.
struct GpuInterface {
  absl::string_view word;  // "opencl": of --device and --target
  absl::string_view name;  // "OpenCL"
  Kind kind;
};
// All interfaces, in the order in which devices are listed.
absl::Span<const GpuInterface> GpuInterfaces();

// The interface named by "opencl" or "opencl:…"; null if the word does not name a GPU.
const GpuInterface* InterfaceOfDevice(absl::string_view word);
// The interface of the GPU with this target key; null if the key is that of a CPU or malformed.
const GpuInterface* InterfaceOfKey(absl::string_view key);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_DEVICE_LIST_H_

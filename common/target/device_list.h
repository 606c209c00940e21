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

// A device of a machine, which a worker can own.
struct ListedDevice {
  std::string device;  // "cpu", "cuda:0", "opencl:0": what --device calls it
  std::string name;    // as its driver says it
  std::string driver;  // vendor and version; "" for the CPU
  Target target;
  std::string problem = {};  // why it cannot be used; "": it can
  std::string warning = {};  // what disturbs measurements, such as errors of its memory; may be ""

  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};

// The devices of a machine. hone-runner, the only program that loads drivers, prints the list as
// JSON; others read it.
struct DeviceList {
  std::vector<ListedDevice> devices;  // the CPU first
  // Why an interface for GPUs ("cuda", "opencl") has no device; it is missing if it has one.
  std::map<std::string, std::string> problems;

  // One line. Bytes of names that are not UTF-8 are replaced.
  std::string ToJson() const;
  // InvalidArgument: the text is not a list of devices; the message says why.
  static absl::StatusOr<DeviceList> FromJson(absl::string_view text);

  // The device that "cpu", "cuda:N", "opencl:N", or "cuda" or "opencl" (the first one) names.
  // InvalidArgument: the name is malformed, or the number too large; the message lists the devices.
  // FailedPrecondition: the machine has no such device, or it cannot be used; the message says why.
  absl::StatusOr<ListedDevice> Find(absl::string_view name) const;
};

// An interface for GPUs, through which programs find devices of a machine.
struct GpuInterface {
  absl::string_view word;  // "opencl": of --device and --target
  absl::string_view name;  // "OpenCL"
  Kind kind;
};
// All interfaces, in the order in which devices are listed.
absl::Span<const GpuInterface> GpuInterfaces();

// The interface of "opencl" or "opencl:…"; null if the word does not name a GPU of a machine.
const GpuInterface* InterfaceOfDevice(absl::string_view word);
// The interface of a target's key; null if it is that of a CPU, or not a key.
const GpuInterface* InterfaceOfKey(absl::string_view key);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_DEVICE_LIST_H_

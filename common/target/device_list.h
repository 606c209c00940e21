#ifndef HONE_COMMON_TARGET_DEVICE_LIST_H_
#define HONE_COMMON_TARGET_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// A device of a machine, which a worker can own.
struct ListedDevice {
  std::string device;  // "cpu", "opencl:0": what --device calls it
  std::string name;    // as its driver says it
  std::string driver;  // vendor and version; "" for the CPU
  Target target;

  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};

// The devices of a machine. hone-runner, the only program that loads drivers, prints the list as
// JSON; others read it.
struct DeviceList {
  std::vector<ListedDevice> devices;  // the CPU first
  std::string opencl_problem;         // why there is no OpenCL device; "": there is one

  // One line. Bytes of names that are not UTF-8 are replaced.
  std::string ToJson() const;
  // InvalidArgument: the text is not a list of devices; the message says why.
  static absl::StatusOr<DeviceList> FromJson(absl::string_view text);

  // The device that "cpu", "opencl" (the first one) or "opencl:N" names. InvalidArgument: the name
  // is malformed, or the number too large; the message lists the devices. FailedPrecondition: the
  // machine has no OpenCL device; the message says why.
  absl::StatusOr<ListedDevice> Find(absl::string_view name) const;
};

// Whether a word names an OpenCL device of a machine: "opencl" or "opencl:…".
bool NamesOpenClDevice(absl::string_view word);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_DEVICE_LIST_H_

#ifndef HONE_CLIENT_CLI_TARGET_ARGUMENT_H_
#define HONE_CLIENT_CLI_TARGET_ARGUMENT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/target/device_list.h"
#include "common/target/target.h"

namespace hone::cli {

// What --target names: this machine ("", "native"), one of its GPUs ("cuda", "cuda:N", "opencl",
// "opencl:N"), a preset, or the key of a target.
struct TargetArgument {
  std::string given;                           // "": not given
  target::Target host;                         // this machine
  std::optional<target::ListedDevice> device;  // the GPU of this machine that is meant

  bool IsNative() const { return given.empty() || given == "native"; }
  // Whether FindDevice has to be called first.
  bool NamesDevice() const { return target::InterfaceOfDevice(given) != nullptr; }
  // The kind of the target: that of a CPU if the name is unknown.
  target::Kind KindOfTarget() const;
  bool IsGpu() const { return KindOfTarget() != target::Kind::kCpu; }

  // Sets `device` if the argument names a GPU of this machine, or is the key of one. Runs
  // hone-runner, but only if the argument may name a device. Errors as for client::ListDevices and
  // target::DeviceList::Find; none for a key.
  absl::Status FindDevice();
  // The key. InvalidArgument: the name is unknown; the message lists the names. FailedPrecondition:
  // the device that it names was not looked for or found.
  absl::StatusOr<std::string> Key() const;
  // The text form. A key is returned unchanged, because only a server with a worker of the target
  // knows its text form. Errors as for Key.
  absl::StatusOr<std::string> Text() const;
};

// Reads an argument and finds its device. The host is detected. Errors as for FindDevice and Key.
absl::StatusOr<TargetArgument> ReadTargetArgument(const std::string& given);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TARGET_ARGUMENT_H_

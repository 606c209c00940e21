#ifndef HONE_CLIENT_CLI_TARGET_ARGUMENT_H_
#define HONE_CLIENT_CLI_TARGET_ARGUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/target/target.h"

namespace hone::cli {

// What --target names: this machine ("", "native"), a preset, or the key of a target.
struct TargetArgument {
  std::string given;    // "": not given
  target::Target host;  // this machine

  bool IsNative() const { return given.empty() || given == "native"; }
  // The key. InvalidArgument: the name is unknown; the message lists the names.
  absl::StatusOr<std::string> Key() const;
  // The text form. A key is returned unchanged, because only a server with a worker of the target
  // knows its text form. Errors as for Key.
  absl::StatusOr<std::string> Text() const;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TARGET_ARGUMENT_H_

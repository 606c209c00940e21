#ifndef HONE_COMMON_TARGET_DEVICE_NAME_H_
#define HONE_COMMON_TARGET_DEVICE_NAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

// Cleans up texts from drivers, and parses the device names that users write.
namespace hone::target {

// Converts a device's name to a word of a target, with the characters a-z, 0-9, '.' and '-':
// "AMD EPYC (4)" → "amd-epyc-4". "unknown" if no character is left.
std::string TargetWord(absl::string_view name);

// A text from a driver in printable ASCII of at most `most` characters, so that it can be shown and
// stored. Line breaks stay if `lines`; all other characters become '?'.
std::string Printable(absl::string_view text, size_t most, bool lines = false);

// N for "<kind>:N", and 0 for "<kind>". InvalidArgument: another name.
absl::StatusOr<uint32_t> DeviceNumberOf(absl::string_view kind, absl::string_view name);

// Describes the devices of one kind on this machine. `device` is the name that a user wrote, such
// as "opencl" or "opencl:1".
using TargetResolver = absl::StatusOr<Target> (*)(absl::string_view device);

// Makes TargetByName pass the names `kind` and `kind:…` to the resolver. Only programs
// that may load drivers add one; the server does not. REQUIRES: called at the program's start,
// before it has other threads. A second call with the same kind has no effect.
void AddTargetResolver(absl::string_view kind, TargetResolver resolver);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_DEVICE_NAME_H_

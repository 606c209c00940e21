#ifndef HONE_COMMON_TARGET_GPU_SOURCES_H_
#define HONE_COMMON_TARGET_GPU_SOURCES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::target {

// The source and the assembly from which a GPU binary was made. An artifact keeps them beside the
// binary, in place of a CPU's object file. One line of JSON, so that equal texts have equal bytes.
struct GpuSources {
  std::string source;    // of the kernels: CUDA C++
  std::string assembly;  // PTX

  std::string Encode() const;
  // InvalidArgument: the bytes are not an encoding of sources.
  static absl::StatusOr<GpuSources> Decode(absl::string_view bytes);
  friend bool operator==(const GpuSources&, const GpuSources&) = default;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_GPU_SOURCES_H_

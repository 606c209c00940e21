#ifndef HONE_COMMON_TARGET_GPU_SOURCES_H_
#define HONE_COMMON_TARGET_GPU_SOURCES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::target {

// The texts that a binary for a GPU was made of, kept beside it in the artifact, as the object file
// of a CPU is. One line of JSON, so that equal texts have equal bytes.
struct GpuSources {
  std::string source;    // of the kernels: CUDA C++
  std::string assembly;  // PTX

  std::string Encode() const;
  // InvalidArgument: other bytes.
  static absl::StatusOr<GpuSources> Decode(absl::string_view bytes);
  friend bool operator==(const GpuSources&, const GpuSources&) = default;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_GPU_SOURCES_H_

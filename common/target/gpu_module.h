#ifndef HONE_COMMON_TARGET_GPU_MODULE_H_
#define HONE_COMMON_TARGET_GPU_MODULE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

// The result of a build for a GPU, which a runner loads: the code of kernels, and their launches.
// Stored as one line of JSON, which `hone export` writes to a separate file, then the code.
namespace hone::target {

// One launch of a kernel. Its parameters are pointers to the workload's inputs and outputs in order
// (global memory), then one to the packed constants and one to the workspace (null if their size is
// 0). Shared memory is declared in the code.
struct GpuLaunch {
  std::string kernel;                        // the function's name
  bool prepack = false;                      // runs once ahead of time, to pack constants
  std::array<int64_t, 3> grid = {1, 1, 1};   // blocks in x, y and z
  std::array<int64_t, 3> block = {1, 1, 1};  // threads of a block in x, y and z
  int64_t shared_bytes = 0;                  // per block

  int64_t Threads() const { return block[0] * block[1] * block[2]; }
  friend bool operator==(const GpuLaunch&, const GpuLaunch&) = default;
};

struct GpuModule {
  Kind kind = Kind::kOpenCl;
  int arguments = 0;  // inputs and outputs
  int64_t packed_bytes = 0;
  int64_t workspace_bytes = 0;
  std::vector<GpuLaunch> launches;  // in order
  std::string code;                 // source text, or a binary for the device

  // {"version": 1, "kind": "opencl", "arguments": 3, …}: everything but the code.
  std::string LaunchesAsJson() const;
  std::string Encode() const;
  // InvalidArgument: not a module, of another version, or with implausible sizes; the message says
  // what is wrong.
  static absl::StatusOr<GpuModule> Decode(absl::string_view bytes);
};

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

#endif  // HONE_COMMON_TARGET_GPU_MODULE_H_

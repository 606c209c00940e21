#ifndef HONE_COMMON_TARGET_TARGET_H_
#define HONE_COMMON_TARGET_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/calibration.h"

namespace hone::target {

// The kind of code that a device runs: native code, or kernels of a GPU interface.
enum class Kind : uint8_t { kCpu, kCuda, kOpenCl };
// "cpu", "cuda", "opencl".
absl::string_view KindName(Kind kind);

// Limits of a GPU, and the resources of one of its compute units. Sizes are those that the device
// reports to programs.
struct GpuLimits {
  int max_threads = 256;            // per block (OpenCL: work group)
  int64_t shared_bytes = 32 << 10;  // per block
  int sub_group = 1;                // threads that run in lockstep (a warp); 1: unknown
  int registers = 0;                // per thread, 32 bits each; 0: unknown
  int unit_threads = 1024;          // resident on a compute unit
  int64_t unit_shared_bytes = 32 << 10;
  int64_t unit_registers = 0;  // 0: unknown
  // Whether shared memory is faster than the caches. On Mali GPUs it is part of main memory.
  bool has_shared_memory = true;
  friend bool operator==(const GpuLimits&, const GpuLimits&) = default;
};

// A device that code is generated for. For a GPU, `arch` is "opencl" or "nvptx64", `cpu` names the
// device, `cores` are its compute units, and `vector_bits` is the widest access of one thread.
// Devices with the same key are interchangeable: a record of one is valid for the other. A value
// type. The text form is one line of key=value words, e.g.
//   target arch=x86_64 cpu=cascadelake features=avx2,avx512f,fma cores=2 vector_bits=512
//   vector_registers=32 l1=32768 …
struct Target {
  Kind kind = Kind::kCpu;       // the text form of a CPU does not have it
  std::string arch = "x86_64";  // LLVM's architecture name
  std::string triple = "x86_64-pc-linux-gnu";
  std::string cpu = "generic";        // LLVM's CPU name
  std::vector<std::string> features;  // sorted; only those that code generation uses
  int cores = 1;                      // cores that a kernel may use
  int vector_bits = 128;              // the widest vectors worth using
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10;  // data caches, per core
  int64_t l2_bytes = 256 << 10;
  // Total over the chiplets and sockets that `cores` can use, so that l3_bytes / cores is the share
  // of one core; 0 if there is no L3
  int64_t l3_bytes = 0;
  int cache_line_bytes = 64;
  GpuLimits gpu;  // the text form of a CPU does not have it
  // What a worker measured. Not part of the key, because no two measurements are equal.
  Calibration calibration;

  // Of a CUDA device, "sm_80" is a feature if its compute capability is at least 8.0.
  bool HasFeature(absl::string_view feature) const;
  // "x86_64-cascadelake-avx512-2c-<8 hex digits>". The digits are a hash over all fields except for
  // the calibration.
  std::string Key() const;
  std::string ToText() const;
  // The text without the calibration, which is the same for all devices with this key.
  std::string KindText() const;
  // InvalidArgument: an unknown key, a number out of range or a missing field; the message names
  // it.
  static absl::StatusOr<Target> FromText(absl::string_view text);

  friend bool operator==(const Target&, const Target&) = default;
};

// This machine, from CPUID, /sys and the CPUs that this process may run on.
Target DetectHost();

// Returns a target by name: "native" (DetectHost) or a preset ("x86-avx2", "x86-avx512",
// "arm-neon", "arm-dotprod", "generic/opencl", "arm/mali-g610" …). NotFound: the message lists the
// names.
absl::StatusOr<Target> TargetByName(absl::string_view name);
std::vector<std::string> TargetNames();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_TARGET_H_

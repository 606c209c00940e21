#ifndef HONE_COMMON_TARGET_TARGET_H_
#define HONE_COMMON_TARGET_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::target {

// What code is generated for. Devices with an equal key are interchangeable: a record of one holds
// for the other. A value type. Text form: one line of key=value words, e.g.
//   target arch=x86_64 cpu=cascadelake features=avx2,avx512f,fma cores=2 vector_bits=512
//   vector_registers=32 l1=32768 …
struct Target {
  std::string arch = "x86_64";  // LLVM's name of the architecture
  std::string triple = "x86_64-pc-linux-gnu";
  std::string cpu = "generic";        // LLVM's name of the CPU
  std::vector<std::string> features;  // sorted; only those that code generation looks at
  int cores = 1;                      // that a kernel may use
  int vector_bits = 128;              // widest vector that pays
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10;  // data caches of one core
  int64_t l2_bytes = 256 << 10;
  int64_t l3_bytes = 0;  // of all `cores` together: the sum over chiplets and sockets, so that
                         // l3_bytes / cores is what one core has; 0: none
  int cache_line_bytes = 64;

  bool HasFeature(absl::string_view feature) const;
  // f32 lanes of the widest vector.
  int VectorLanesF32() const { return vector_bits / 32; }
  // "x86_64-cascadelake-avx512-2c-<8 hex digits>": readable, and unique by a hash over every field.
  std::string Key() const;
  std::string ToText() const;
  // InvalidArgument: an unknown word, a number out of range, or a missing field; the message names
  // it.
  static absl::StatusOr<Target> FromText(absl::string_view text);

  friend bool operator==(const Target&, const Target&) = default;
};

// This machine, read from CPUID, /sys and the CPUs that this process may run on.
Target DetectHost();

// A target by name: "native" (DetectHost) or a preset ("x86-avx2", "x86-avx512"). NotFound: lists
// the names.
absl::StatusOr<Target> TargetByName(absl::string_view name);
std::vector<std::string> TargetNames();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_TARGET_H_

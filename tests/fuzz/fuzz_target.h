#ifndef HONE_TESTS_FUZZ_FUZZ_TARGET_H_
#define HONE_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

// The entry point for libFuzzer and the smoke driver. It must return for any input: refusals are
// Statuses. A violated property ends the process.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Optional initialization before the first input.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace hone::fuzz {

inline absl::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process if a property does not hold.
inline void Require(bool holds, const char* property, absl::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%.*s\n", property, static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_FUZZ_TARGET_H_

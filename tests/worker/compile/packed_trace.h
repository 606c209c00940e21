#ifndef HONE_TESTS_WORKER_COMPILE_PACKED_TRACE_H_
#define HONE_TESTS_WORKER_COMPILE_PACKED_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/ir/dtype.h"

namespace hone::codegen {

// A trace for a GPU with an output for each operation that is computed on two short floats at a
// time, in vectors of 8: sums, differences, products, a product and a sum, the maximum, the
// minimum, and a chain of stages.
inline std::string PackedTrace(ir::DType dtype, int64_t elements) {
  const absl::string_view type = ir::DTypeName(dtype);
  std::string text = "workload packed\n", trace = "trace 1\n";
  for (const char* const input : {"A", "B", "C"}) {
    absl::StrAppend(&text, "input ", input, ": ", type, "[", elements, "]\n");
  }
  absl::StrAppend(&text, "S[i: ", elements, "] = A[i] * 0.5 + B[i]\nT[i: ", elements,
                  "] = max(S[i], 0.0)\n");
  constexpr const char* kOutputs[][2] = {
      {"Sum", "A[i] + B[i]"},          {"Difference", "A[i] - B[i]"},
      {"Product", "A[i] * B[i]"},      {"Fused", "A[i] * B[i] + C[i]"},
      {"Larger", "max(A[i], B[i])"},   {"Smaller", "min(A[i], B[i])"},
      {"Chain", "T[i] * C[i] - B[i]"}, {"Mixed", "exp(T[i]) + C[i]"}};
  int number = 0;
  for (const auto& [name, value] : kOutputs) {
    absl::StrAppend(&text, "output ", name, "[i: ", elements, "] = ", value, "\n");
  }
  for (const auto& [name, value] : kOutputs) {
    const std::string b = absl::StrCat("b", number), l = absl::StrCat("l", 3 * number),
                      x = absl::StrCat("l", 3 * number + 1), y = absl::StrCat("l", 3 * number + 2);
    absl::StrAppend(&trace, b, " = block(\"", name, "\")\n", l, " = loops(", b, ")\n", x, ", ", y,
                    " = split(", l, ", 0, 8)\nbind(", x, ", \"threadIdx.x\")\nvectorize(", y,
                    ")\n");
    ++number;
  }
  return text +
         "trace 1\ns0 = block(\"S\")\ncompute_inline(s0)\nt0 = block(\"T\")\n"
         "compute_inline(t0)\n" +
         trace.substr(trace.find('\n') + 1);
}

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_PACKED_TRACE_H_

// The schedules written by hand for speed compute what the unscheduled workload does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/ir/workload_parser.h"
#include "tests/worker/codegen/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;

// Whole numbers, so small that sums of floats are exact in every order.
Values Inputs(const ir::Tensor& tensor, Rng& rng) {
  Values values;
  for (int64_t e = 0; e < ir::ElementsOf(tensor.shape); ++e) {
    const double whole = static_cast<double>(rng.Below(127));
    values.push_back(tensor.dtype == ir::DType::kU8   ? whole
                     : tensor.dtype == ir::DType::kI8 ? whole - 63
                                                      : static_cast<double>(rng.Below(5)) - 2);
  }
  return values;
}

// Rewrites round differently (rewritten_kernel_test has them), and the largest products take the
// unscheduled kernel seconds; `compare` checks those against the libraries.
TEST(BenchTracesTest, ComputeWhatTheWorkloadDoes) {
  constexpr double kMaxFlops = 1e8;
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/bench/traces")) {
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok()) << text.status();
    if (absl::StrContains(*text, "rewrite(") || absl::StrContains(*text, "tensorize(")) continue;
    const std::string workload_text = text->substr(0, text->find("\ntrace 1\n") + 1);
    const auto workload = ir::ParseWorkload(workload_text);
    ASSERT_TRUE(workload.ok()) << entry.path() << ": " << workload.status();
    if (workload->FlopCount() > kMaxFlops) continue;
    ++traces;
    std::vector<Values> inputs;
    Rng rng(7, traces);
    for (const ir::BufferId id : workload->Inputs())
      inputs.push_back(Inputs(workload->tensors[id], rng));
    const target::Target target = RunnableTargets().back();
    const auto expected = RunTrace(target, absl::StrCat(workload_text, "trace 1\n"), inputs);
    ASSERT_TRUE(expected.ok()) << entry.path() << ": " << expected.status();
    const auto actual = RunTrace(target, *text, inputs);
    ASSERT_TRUE(actual.ok()) << entry.path() << ": " << actual.status();
    for (size_t t = 0; t < expected->size(); ++t) {
      for (size_t e = 0; e < (*expected)[t].size(); ++e) {
        const double want = (*expected)[t][e];
        ASSERT_NEAR((*actual)[t][e], want, 1e-4 * std::max(1.0, std::abs(want)))
            << entry.path() << ": output " << t << "[" << e << "]";
      }
    }
  }
  EXPECT_GE(traces, 15);
}

}  // namespace
}  // namespace hone::codegen

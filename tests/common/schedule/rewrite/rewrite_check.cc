#include "tests/common/schedule/rewrite/rewrite_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "common/ir/workload_parser.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/ir/interpret_element.h"
#include "tests/status.h"

namespace hone::schedule {

ir::Workload Parsed(const std::string& text) {
  auto workload = ir::ParseWorkload(text);
  if (!workload.ok()) {
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), workload.status().ToString().c_str());
    std::abort();
  }
  return *std::move(workload);
}

std::vector<ir::Values> RandomInputs(const ir::Workload& workload, Fill fill, Rng& rng) {
  std::vector<ir::Values> inputs;
  for (ir::BufferId id : workload.Inputs()) {
    const ir::Tensor& tensor = workload.tensors[id];
    ir::Values& values = inputs.emplace_back(ir::ElementsOf(tensor.shape));
    for (double& value : values) {
      const double uniform = static_cast<double>(rng.Below(1 << 20)) / (1 << 20);
      value = fill == Fill::kInteger     ? static_cast<double>(rng.Below(9)) - 4
              : fill == Fill::kSymmetric ? 2 * uniform - 1
                                         : uniform;
      value = ir::CastTo(tensor.dtype, value).real();
    }
  }
  return inputs;
}

RewriteError ErrorOf(const ir::Workload& original, const ir::Workload& rewritten,
                     const std::vector<ir::Values>& inputs) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const auto got = ir::Interpret(rewritten, inputs);
  if (!got.ok()) {
    std::fprintf(stderr, "%s\n", got.status().ToString().c_str());
    return {kInfinite, kInfinite};
  }
  const std::vector<ir::BufferId> ids = original.Inputs();
  RewriteError worst;
  for (size_t o = 0; o < got->size(); ++o) {
    const ir::BufferId output = original.Outputs()[o];
    const ir::Shape& shape = original.tensors[output].shape;
    if (static_cast<int64_t>((*got)[o].size()) != ir::ElementsOf(shape))
      return {kInfinite, kInfinite};
    double largest_error = 0, largest_magnitude = 0;
    for (int64_t e = 0; e < ir::ElementsOf(shape); ++e) {
      std::vector<int64_t> indices(shape.size());
      int64_t rest = e;
      for (size_t d = shape.size(); d-- > 0;) {
        indices[d] = rest % shape[d];
        rest /= shape[d];
      }
      const ir::ElementValue exact =
          ir::InterpretElement(original, output, indices, [&](ir::BufferId tensor, int64_t at) {
            return inputs[std::find(ids.begin(), ids.end(), tensor) - ids.begin()][at];
          });
      const double error = std::abs((*got)[o][e] - exact.value.real());
      if (std::isnan(error)) return {kInfinite, kInfinite};
      largest_error = std::max(largest_error, error);
      largest_magnitude = std::max(largest_magnitude, exact.magnitude);
      if (error != 0) worst.by_element = std::max(worst.by_element, error / exact.magnitude);
    }
    if (largest_error != 0)
      worst.by_tensor = std::max(worst.by_tensor, largest_error / largest_magnitude);
  }
  return worst;
}

ir::Workload ExactlyRewritten(const std::string& text, absl::string_view name,
                              absl::string_view stage, const std::vector<int64_t>& numbers) {
  const ir::Workload original = Parsed(text);
  const auto rewritten = ApplyRewriteTo(original, name, stage, numbers);
  EXPECT_THAT(rewritten, IsOk()) << text;
  if (!rewritten.ok()) return original;
  Rng rng(1);
  EXPECT_EQ(ErrorOf(original, *rewritten, RandomInputs(original, Fill::kInteger, rng)).by_tensor, 0)
      << rewritten->ToText();
  EXPECT_EQ(Parsed(rewritten->ToText()).StructuralDigest(), rewritten->StructuralDigest())
      << rewritten->ToText();
  EXPECT_EQ(RewriteTolerance(original, name, stage, numbers).value(), 0);
  return *rewritten;
}

std::string Refusal(const std::string& text, absl::string_view name, absl::string_view stage,
                    const std::vector<int64_t>& numbers) {
  return std::string(ApplyRewriteTo(Parsed(text), name, stage, numbers).status().message());
}

}  // namespace hone::schedule

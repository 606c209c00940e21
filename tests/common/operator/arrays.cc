#include "tests/common/operator/arrays.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/operator/operator.h"
#include "tests/status.h"

namespace hone::op {

Array::Array(std::vector<int64_t> s) : shape(std::move(s)) {
  size_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  data.resize(elements);
}

size_t Array::Offset(std::initializer_list<int64_t> indices) const {
  if (indices.size() != shape.size()) std::abort();
  int64_t offset = 0;
  size_t d = 0;
  for (int64_t index : indices) {
    if (index < 0 || index >= shape[d]) std::abort();
    offset = offset * shape[d++] + index;
  }
  return offset;
}

absl::StatusOr<ir::Workload> Build(const std::string& line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  const std::string name = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  return BuildWorkload(name, words);
}

ir::Workload Built(const std::string& line) {
  auto workload = Build(line);
  EXPECT_THAT(workload, IsOk()) << line;
  return std::move(workload).value();
}

std::vector<Array> Inputs(const ir::Workload& workload, uint64_t seed, Kind kind) {
  Rng rng(seed);
  std::vector<Array> inputs;
  for (ir::BufferId id : workload.Inputs()) {
    const ir::Tensor& tensor = workload.tensors[id];
    Array& array =
        inputs.emplace_back(std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()));
    for (double& value : array.data) {
      const double whole = tensor.dtype == ir::DType::kU8 ? static_cast<double>(rng.Below(4))
                                                          : static_cast<double>(rng.Below(7)) - 3;
      const double real = static_cast<double>(rng.Below(1 << 20)) * 0x1p-18 - 2;
      value = kind == Kind::kWhole ? whole : ir::CastTo(tensor.dtype, real).real();
    }
  }
  return inputs;
}

std::vector<Array> Compute(const ir::Workload& workload, const std::vector<Array>& inputs) {
  std::vector<ir::Values> values;
  for (const Array& input : inputs) values.push_back(input.data);
  auto computed = ir::Interpret(workload, values);
  EXPECT_THAT(computed, IsOk()) << workload.ToText();
  std::vector<Array> outputs;
  const std::vector<ir::BufferId> ids = workload.Outputs();
  for (size_t i = 0; i < ids.size(); ++i) {
    const ir::Shape& shape = workload.tensors[ids[i]].shape;
    outputs.emplace_back(std::vector<int64_t>(shape.begin(), shape.end())).data = computed->at(i);
  }
  return outputs;
}

void ExpectNear(const Array& got, const Array& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  for (size_t i = 0; i < got.data.size(); ++i) {
    ASSERT_NEAR(got.data[i], expected.data[i],
                tolerance * std::max(1.0, std::abs(expected.data[i])))
        << what << ", element " << i;
  }
}

}  // namespace hone::op

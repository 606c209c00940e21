#include "tests/worker/compile/lower/random_strides.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hone::lower {
namespace {

ir::Shape StridesOf(const ir::Shape& shape, Rng& rng) {
  if (shape.empty() || rng.Below(3) == 0) return {};
  const size_t sliced = rng.Below(shape.size());
  ir::Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    const auto more = d == sliced ? static_cast<int64_t>(rng.Below(20)) : 0;
    strides[d - 1] = strides[d] * (shape[d] + more);
  }
  return strides;
}

}  // namespace

ArgumentStrides RandomStrides(const ir::Workload& workload, Rng& rng) {
  ArgumentStrides strides;
  for (const ir::BufferId id : workload.Inputs()) {
    strides.push_back(StridesOf(workload.tensors[id].shape, rng));
    if (ir::IsPacked(workload.tensors[id].dtype)) strides.back().clear();
  }
  std::map<int, ir::Shape> of_stage;
  for (const ir::BufferId id : workload.Outputs()) {
    const ir::Tensor& output = workload.tensors[id];
    const std::vector<ir::BufferId>& tuple = workload.stages[output.stage].tensors;
    const bool all_outputs = std::all_of(tuple.begin(), tuple.end(), [&](ir::BufferId component) {
      return workload.tensors[component].output;
    });
    const auto [known, added] = of_stage.try_emplace(output.stage);
    if (added && all_outputs) known->second = StridesOf(output.shape, rng);
    strides.push_back(known->second);
  }
  return strides;
}

}  // namespace hone::lower

#include "client/network/graph/sample_tracker.h"

#include <algorithm>
#include <optional>

#include "common/ir/index.h"

namespace hone::graph {

bool SampleTracker::Run(const std::vector<SampleState>& inputs, std::vector<SampleState>& outputs) {
  const std::vector<ir::BufferId> in = workload_.Inputs();
  for (size_t i = 0; i < in.size(); ++i) states_[in[i]] = inputs[i];
  for (const ir::Stage& stage : workload_.stages) {
    const SampleState state = StateOf(stage);
    if (state.depends && !state.sample.has_value()) return false;
    for (const ir::BufferId tensor : stage.tensors) states_[tensor] = state;
  }
  for (const ir::BufferId id : workload_.Outputs()) outputs.push_back(states_[id]);
  return true;
}

SampleState SampleTracker::StateOf(const ir::Stage& stage) {
  SampleState state;
  for (const ir::ExprId value : stage.values) {
    workload_.pool.VisitLoads(value, [&](const ir::Expr& load) {
      state.depends = state.depends || (states_[load.buffer].depends && !ReadsFirst(load));
    });
  }
  for (size_t d = 0; d < stage.spatial.size() && !state.sample.has_value(); ++d) {
    const int64_t extent = stage.spatial[d].extent;
    if (extent % samples_ != 0) continue;
    const SampleDim dim{static_cast<int>(d), extent / samples_};
    if (KeepsSamples(stage, dim)) state.sample = dim;
  }
  return state;
}

bool SampleTracker::ReadsFirst(const ir::Expr& load) const {
  const std::optional<SampleDim>& sample = states_[load.buffer].sample;
  if (!sample.has_value() || sample->axis == load.gathered) return false;
  const ir::Range range = workload_.atoms.RangeOf(workload_.pool.IndicesOf(load)[sample->axis]);
  return range.min >= 0 && range.max < sample->block;
}

bool SampleTracker::KeepsSamples(const ir::Stage& stage, const SampleDim& dim) {
  ir::AtomTable atoms = workload_.atoms;
  const ir::AtomId sample = atoms.AddVar("sample", samples_);
  ir::Index element = ir::Index::Of(sample, dim.block);
  if (dim.block > 1) element += ir::Index::Of(atoms.AddVar("element", dim.block));
  const auto divided = [&](const ir::Index& index) {
    return atoms.Substitute(index, {{stage.spatial[dim.axis].var, element}});
  };
  const auto has_sample = [&](const ir::Index& index) {
    return atoms.DependsOn(divided(index), sample);
  };
  bool keeps = true;
  for (const ir::Condition& guard : stage.guards) keeps = keeps && !has_sample(guard.index);
  for (const ir::ExprId value : stage.values) {
    workload_.pool.Visit(value, [&](const ir::Expr& expr) {
      if (expr.indices < 0) return;
      const ir::IndexList& indices = workload_.pool.IndicesOf(expr);
      const bool same = std::none_of(indices.begin(), indices.end(), has_sample);
      if (expr.op != ir::Op::kLoad) {
        keeps = keeps && same;
        return;
      }
      const SampleState& read = states_[expr.buffer];
      if ((!read.depends || ReadsFirst(expr)) && same) return;
      keeps = keeps && read.sample.has_value() && read.sample->axis != expr.gathered;
      if (!keeps) return;
      const ir::Index position = divided(indices[read.sample->axis]);
      const int64_t block = read.sample->block;
      // The position within the sample is the same for every sample.
      keeps = atoms.FloorDiv(position, block) == ir::Index::Of(sample) &&
              !atoms.DependsOn(atoms.Mod(position, block), sample);
      for (size_t i = 0; i < indices.size() && keeps; ++i) {
        keeps = static_cast<int>(i) == read.sample->axis || !has_sample(indices[i]);
      }
    });
  }
  return keeps;
}

}  // namespace hone::graph

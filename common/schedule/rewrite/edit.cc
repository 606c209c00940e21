#include "common/schedule/rewrite/edit.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace hone::schedule {

ir::Axis NewAxis(ir::Workload& workload, absl::string_view name, int64_t extent) {
  return {workload.atoms.AddVar(std::string(name), extent), extent};
}

ir::BufferId NewTensor(ir::Workload& workload, absl::string_view base, ir::DType dtype,
                       const std::vector<ir::Axis>& axes) {
  ir::Tensor tensor{.dtype = dtype};
  for (int suffix = 0; tensor.name.empty(); ++suffix) {
    std::string name = suffix == 0 ? std::string(base) : absl::StrCat(base, suffix);
    const bool taken =
        absl::c_any_of(workload.tensors, [&](const ir::Tensor& t) { return t.name == name; });
    if (!taken) tensor.name = std::move(name);
  }
  for (const ir::Axis& axis : axes) tensor.shape.push_back(axis.extent);
  workload.tensors.push_back(std::move(tensor));
  return static_cast<ir::BufferId>(workload.tensors.size()) - 1;
}

ir::BufferId InsertStage(ir::Workload& workload, int& position, absl::string_view name,
                         std::vector<ir::Axis> spatial, ir::Reducer reducer,
                         std::vector<ir::Axis> reduce, std::vector<ir::Condition> guards,
                         ir::ExprId value) {
  const ir::BufferId tensor = NewTensor(workload, name, workload.pool[value].dtype, spatial);
  workload.stages.insert(workload.stages.begin() + position,
                         ir::Stage{.tensors = {tensor},
                                   .spatial = std::move(spatial),
                                   .reduce = std::move(reduce),
                                   .guards = std::move(guards),
                                   .reducer = reducer,
                                   .values = {value}});
  ++position;
  return tensor;
}

ir::ExprId LoadOf(ir::Workload& workload, ir::BufferId tensor, ir::IndexList indices) {
  return workload.pool.Load(tensor, workload.tensors[tensor].dtype, std::move(indices));
}

ir::Workload Renumbered(ir::Workload workload) {
  std::vector<ir::Tensor> tensors;
  std::vector<ir::BufferId> renamed(workload.tensors.size(), -1);
  const auto keep = [&](ir::BufferId id, int stage) {
    renamed[id] = static_cast<ir::BufferId>(tensors.size());
    tensors.push_back(workload.tensors[id]);
    tensors.back().stage = stage;
  };
  for (ir::BufferId input : workload.Inputs()) keep(input, -1);
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    for (ir::BufferId& tensor : workload.stages[s].tensors) {
      keep(tensor, static_cast<int>(s));
      tensor = renamed[tensor];
    }
  }
  workload.tensors = std::move(tensors);
  for (ir::Stage& stage : workload.stages) {
    for (ir::ExprId& value : stage.values) {
      value = workload.pool.Rewrite(
          value,
          [&](const ir::Expr& load) {
            if (renamed[load.buffer] == load.buffer) return ir::kNoExpr;
            ir::IndexList indices = workload.pool.IndicesOf(load);
            const ir::BufferId to = renamed[load.buffer];
            if (load.gathered < 0) return workload.pool.Load(to, load.dtype, std::move(indices));
            return workload.pool.Gather(to, load.dtype, std::move(indices), load.gathered, load.a);
          },
          [](const ir::Index& index) { return index; });
    }
  }
  return workload;
}

}  // namespace hone::schedule

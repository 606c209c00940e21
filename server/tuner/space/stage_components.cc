#include "server/tuner/space/stage_components.h"

#include <algorithm>
#include <map>

namespace hone::space {

std::vector<int> StageComponents(const ir::Workload& workload) {
  // Every stage starts with a new label, and merges it with the labels of the stages that it reads.
  std::vector<int> labels;
  std::map<ir::BufferId, size_t> writer;
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const ir::Stage& stage = workload.stages[s];
    const int own = static_cast<int>(s);
    labels.push_back(own);
    for (const ir::ExprId value : stage.values) {
      workload.pool.VisitLoads(value, [&](const ir::Expr& load) {
        const auto read = writer.find(load.buffer);
        if (read == writer.end()) return;
        std::replace(labels.begin(), labels.end(), int{labels[read->second]}, own);
      });
    }
    for (const ir::BufferId tensor : stage.tensors) writer[tensor] = s;
  }
  std::map<int, int> numbers;
  for (int& label : labels) {
    label = numbers.emplace(label, static_cast<int>(numbers.size())).first->second;
  }
  return labels;
}

}  // namespace hone::space

#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLE_TRACKER_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLE_TRACKER_H_

#include <cstdint>
#include <vector>

#include "client/network/graph/sample_state.h"
#include "common/ir/expr.h"
#include "common/ir/workload.h"

namespace hone::graph {

// Follows the samples through the stages of a workload, which must outlive this object.
class SampleTracker {
 public:
  SampleTracker(const ir::Workload& workload, int64_t samples)
      : workload_(workload), samples_(samples), states_(workload.tensors.size()) {}

  // False if samples mix. `states` are those of the inputs, and then of the outputs.
  bool Run(const std::vector<SampleState>& inputs, std::vector<SampleState>& outputs);

 private:
  SampleState StateOf(const ir::Stage& stage);
  // Whether a load reads the first sample, which is never padding, for each element of the stage.
  bool ReadsFirst(const ir::Expr& load) const;
  // Whether element i of the stage's dimension reads only the sample i / block, and nothing else
  // that depends on the number of the sample.
  bool KeepsSamples(const ir::Stage& stage, const SampleDim& dim);

  const ir::Workload& workload_;
  const int64_t samples_;
  std::vector<SampleState> states_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLE_TRACKER_H_

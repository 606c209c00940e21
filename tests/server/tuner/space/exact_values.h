#ifndef HONE_TESTS_SERVER_TUNER_SPACE_EXACT_VALUES_H_
#define HONE_TESTS_SERVER_TUNER_SPACE_EXACT_VALUES_H_

#include <vector>

#include "common/ir/dtype.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"

namespace hone::space {

// Returns values as the scalars that the interpreter of lowered programs takes.
inline std::vector<ir::Scalars> ExactValues(const ir::Workload& workload,
                                            const std::vector<ir::BufferId>& tensors,
                                            const std::vector<ir::Values>& values) {
  std::vector<ir::Scalars> exact;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ir::Scalars& scalars = exact.emplace_back();
    for (const double value : values[i]) {
      scalars.push_back(ir::CastTo(workload.tensors[tensors[i]].dtype, ir::Scalar(value)));
    }
  }
  return exact;
}

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_TUNER_SPACE_EXACT_VALUES_H_

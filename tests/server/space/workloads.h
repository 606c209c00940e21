#ifndef HONE_TESTS_SERVER_SPACE_WORKLOADS_H_
#define HONE_TESTS_SERVER_SPACE_WORKLOADS_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"

namespace hone::space {

// A workload from a line like "matmul m=8 n=8 k=8", or from its text form when it begins with
// "workload".
std::shared_ptr<const ir::Workload> MakeWorkload(absl::string_view text);

// Small whole numbers for every input, the same for the same seed: sums of them are exact in f32.
std::vector<ir::Values> SmallIntegers(const ir::Workload& workload, uint64_t seed);

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_SPACE_WORKLOADS_H_

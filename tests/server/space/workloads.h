#ifndef HONE_TESTS_SERVER_SPACE_WORKLOADS_H_
#define HONE_TESTS_SERVER_SPACE_WORKLOADS_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::space {

// Makes a workload from a line like "matmul m=8 n=8 k=8", or from its text form if the text begins
// with "workload".
std::shared_ptr<const ir::Workload> MakeWorkload(absl::string_view text);

// The presets x86-avx512 and x86-avx2.
target::Target Avx512();
target::Target Avx2();

// Small integers for every input, determined by the seed. Sums of them are exact in f32.
std::vector<ir::Values> SmallIntegers(const ir::Workload& workload, uint64_t seed);

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_SPACE_WORKLOADS_H_

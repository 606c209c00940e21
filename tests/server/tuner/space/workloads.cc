#include "tests/server/tuner/space/workloads.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"

namespace hone::space {

std::shared_ptr<const ir::Workload> MakeWorkload(absl::string_view text) {
  if (absl::StartsWith(text, "workload")) {
    return std::make_shared<const ir::Workload>(ir::ParseWorkload(text).value());
  }
  std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipWhitespace());
  const std::string name = words[0];
  words.erase(words.begin());
  return std::make_shared<const ir::Workload>(op::BuildWorkload(name, words).value());
}

std::vector<ir::Values> SmallIntegers(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<ir::Values> inputs;
  for (ir::BufferId input : workload.Inputs()) {
    ir::Values values(ir::ElementsOf(workload.tensors[input].shape));
    for (double& value : values) value = static_cast<double>(rng.Below(7)) - 3;
    inputs.push_back(std::move(values));
  }
  return inputs;
}

target::Target Avx512() { return target::TargetByName("x86-avx512").value(); }
target::Target Avx2() { return target::TargetByName("x86-avx2").value(); }

}  // namespace hone::space

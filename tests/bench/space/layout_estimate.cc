// Estimates convolutions with channels first and last on GPUs: the fewest cycles of random
// candidates, by the analytic model that orders the first candidates of a search.
// tests/bench/results/gpu_layouts.md has the output.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"
#include "server/tuner/space/generate.h"

namespace {

constexpr uint64_t kDraws = 300;  // of each design space

const char* const kTargets[] = {"nvidia/a100", "nvidia/t4", "arm/mali-g610", "generic/opencl"};
const char* const kShapes[] = {
    "h=224 w=224 ci=3 co=64 k=7 s=2 p=3", "h=56 w=56 ci=64 co=64 k=3 p=1",
    "h=56 w=56 ci=64 co=256 k=1",         "h=28 w=28 ci=128 co=128 k=3 p=1",
    "h=28 w=28 ci=8 co=16 k=5 p=2",       "h=14 w=14 ci=256 co=256 k=3 p=1",
    "h=14 w=14 ci=1024 co=256 k=1",       "h=7 w=7 ci=512 co=512 k=3 p=1"};

double FewestCycles(const std::string& op, const char* shape, const hone::target::Target& target) {
  const std::vector<std::string> words = absl::StrSplit(absl::StrCat("n=1 ", shape), ' ');
  const auto workload =
      std::make_shared<const hone::ir::Workload>(hone::op::BuildWorkload(op, words).value());
  const auto spaces = hone::space::GenerateDesignSpaces(workload, target).value();
  double fewest = INFINITY;
  for (const auto& space : spaces) {
    for (uint64_t i = 0; i < kDraws; ++i) {
      hone::Rng rng(1, i);
      const auto decisions = space->Sample(rng);
      if (!decisions.ok()) continue;
      const auto program = space->Replay(*decisions);
      hone::feature::Nest nest;
      if (!program.ok() || !nest.Analyze(*program).ok()) continue;
      const auto machine = hone::feature::AnalyticMachine::Of(target);
      fewest = std::min(fewest, hone::feature::EstimateCost(nest, machine).cycles);
    }
  }
  return fewest;
}

}  // namespace

int main() {
  for (const char* const name : kTargets) {
    const hone::target::Target target = hone::target::TargetByName(name).value();
    double logarithms = 0;
    for (const char* const shape : kShapes) {
      const double last = FewestCycles("conv2d", shape, target);
      const double first = FewestCycles("conv2d_nchw", shape, target);
      logarithms += std::log(first / last);
      std::printf("%-15s %-36s %5.2f\n", name, shape, first / last);
    }
    std::printf("%-15s %-36s %5.2f\n", name, "geometric mean",
                std::exp(logarithms / std::size(kShapes)));
  }
}

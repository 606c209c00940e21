#include "server/tuner/space/algorithm.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/tuner/space/contraction.h"
#include "server/tuner/space/gpu/gpu_limits.h"

namespace hone::space {
namespace {

constexpr char kBf16[] = "bf16", kIm2col[] = "im2col", kWinograd[] = "winograd";
// Output tile sizes. F(6, 3) would need a tolerance of 1e-4, and 64 products of few tiles each.
constexpr int64_t kWinogradTiles[] = {2, 4};

const ir::Stage* StageOf(const ir::Workload& workload, absl::string_view name) {
  for (const ir::Stage& stage : workload.stages) {
    if (workload.tensors[stage.tensors[0]].name == name) return &stage;
  }
  return nullptr;
}

// Whether a sum of products has a constant factor. Transforming the weights in each call would cost
// more than it saves.
bool HasConstantFactor(const ir::Workload& workload, const ir::Stage& stage) {
  bool constant = false;
  workload.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    constant |= workload.tensors[load.buffer].constant;
  });
  return constant;
}

// Whether the target has an instruction for dot products of bf16.
bool MultipliesBf16(const target::Target& target) {
  return std::ranges::any_of(ir::Intrinsics(), [&](const ir::Intrinsic& instruction) {
    if (instruction.shape != ir::Intrinsic::Shape::kDot || instruction.arch != target.arch ||
        !target.HasFeature(instruction.feature))
      return false;
    const ir::Workload& description = ir::DescriptionOf(instruction);
    return description.tensors[description.Inputs()[0]].dtype == ir::DType::kBF16;
  });
}

// Adds a rewrite of a stage if the tolerance allows it.
void Add(const ir::Workload& workload, Algorithm algorithm, double tolerance,
         std::vector<Algorithm>& algorithms) {
  const absl::StatusOr<double> needed =
      schedule::RewriteTolerance(workload, algorithm.rewrite, algorithm.stage, algorithm.numbers);
  if (!needed.ok() || *needed > tolerance) return;
  absl::StatusOr<ir::Workload> rewritten =
      schedule::ApplyRewriteTo(workload, algorithm.rewrite, algorithm.stage, algorithm.numbers);
  if (!rewritten.ok()) return;
  algorithm.rewritten = *std::move(rewritten);
  algorithms.push_back(std::move(algorithm));
}

// Returns the stages that im2col serves on the target.
std::vector<std::string> PaddedContractions(const ir::Workload& workload,
                                            const target::Target& target) {
  std::vector<std::string> names;
  if (target.kind == target::Kind::kCpu || !GpuTileLimits::Of(target).shared_memory) return names;
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    const ir::NodeId block = program.FindBlock(name);
    const std::optional<Contraction> contraction = AnalyzeContraction(program, block);
    if (contraction.has_value() && HasPaddedWindow(program, block, *contraction))
      names.push_back(name);
  }
  return names;
}

}  // namespace

bool FitsWinograd(const ir::Workload& workload, absl::string_view stage, int64_t m,
                  double tolerance) {
  if (tolerance <= 0) return false;
  const absl::StatusOr<double> needed = schedule::RewriteTolerance(workload, kWinograd, stage, {m});
  if (!needed.ok() || *needed > tolerance) return false;
  // The rewrite supports stages with the axes n, h, w, co.
  const std::vector<ir::Axis>& axes = StageOf(workload, stage)->spatial;
  return axes[1].extent >= m && axes[2].extent >= m;
}

std::vector<Algorithm> AlgorithmsFor(const ir::Workload& workload, const target::Target& target,
                                     double tolerance) {
  std::vector<Algorithm> algorithms;
  for (const std::string& name : PaddedContractions(workload, target)) {
    Add(workload, {kIm2col, kIm2col, name, {}, {}, /*thoroughly=*/true}, tolerance, algorithms);
  }
  if (tolerance <= 0) return algorithms;
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    for (const int64_t m : kWinogradTiles) {
      if (FitsWinograd(workload, name, m, tolerance) && HasConstantFactor(workload, stage))
        Add(workload, {absl::StrCat(kWinograd, m), kWinograd, name, {m}, {}}, tolerance,
            algorithms);
    }
    if (MultipliesBf16(target)) Add(workload, {kBf16, kBf16, name, {}, {}}, tolerance, algorithms);
  }
  return algorithms;
}

}  // namespace hone::space

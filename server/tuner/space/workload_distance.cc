#include "server/tuner/space/workload_distance.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "server/tuner/space/contraction.h"

namespace hone::space {
namespace {

constexpr double kInputWeight = 0.25;
constexpr double kOtherName = 4;

double LogRatio(double a, double b) { return std::abs(std::log2(a / b)); }

// nullopt: not of the same form.
std::optional<double> AxesDistance(const std::vector<ir::Axis>& a, const std::vector<ir::Axis>& b) {
  if (a.size() != b.size()) return std::nullopt;
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    distance += LogRatio(static_cast<double>(a[i].extent), static_cast<double>(b[i].extent));
  }
  return distance;
}

std::optional<double> FormDistance(const ir::Workload& a, const ir::Workload& b) {
  if (a.tensors.size() != b.tensors.size() || a.stages.size() != b.stages.size()) {
    return std::nullopt;
  }
  double distance = a.name == b.name ? 0 : kOtherName;
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const ir::Tensor &x = a.tensors[t], &y = b.tensors[t];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size() || x.input != y.input ||
        x.constant != y.constant || x.stage != y.stage) {
      return std::nullopt;
    }
    if (!x.input) continue;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      distance +=
          kInputWeight * LogRatio(static_cast<double>(x.shape[d]), static_cast<double>(y.shape[d]));
    }
  }
  for (size_t s = 0; s < a.stages.size(); ++s) {
    if (a.stages[s].reducer != b.stages[s].reducer) return std::nullopt;
    const auto spatial = AxesDistance(a.stages[s].spatial, b.stages[s].spatial);
    const auto reduce = AxesDistance(a.stages[s].reduce, b.stages[s].reduce);
    if (!spatial || !reduce) return std::nullopt;
    distance += *spatial + *reduce;
  }
  return distance;
}

bool HasContraction(const ir::Workload& workload) {
  const ir::Program program =
      ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    if (AnalyzeContraction(program, program.FindBlock(name))) return true;
  }
  return false;
}

}  // namespace

double WorkloadDistance(const ir::Workload& a, const ir::Workload& b) {
  if (const std::optional<double> distance = FormDistance(a, b)) return *distance;
  if (!HasContraction(a) || !HasContraction(b)) return std::numeric_limits<double>::infinity();
  return kOtherForm + LogRatio(FlopCount(a), FlopCount(b));
}

}  // namespace hone::space

#include "tests/server/tuner/cost_model/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/rng.h"

namespace hone::cost_model {
namespace {

constexpr int kDecisions = 8;
constexpr int kLevels = 6;  // values per decision
constexpr int kKinds = 3;   // of statement
constexpr int kKind = 7;    // the decision that selects the kind

// The two decisions whose values a column adds. The first kDecisions columns are the decisions
// themselves.
int FirstTerm(int column) { return column % kDecisions; }
int SecondTerm(int column) { return (column / kDecisions * 5 + 3) % kDecisions; }

// Models the statements of a tiled loop nest; decisions[kKind] selects one. The kernel is fastest
// with a certain tile and few registers, the packing with two balanced extents, and the write-back
// with a small extent.
double StatementThroughput(absl::Span<const float> decisions) {
  const auto near = [](double x, double width) { return std::exp(-x * x / width); };
  switch (static_cast<int>(decisions[kKind])) {
    case 0:
      return near(decisions[0] - 3, 5) * (decisions[3] + decisions[4] > 6 ? 0.5 : 1.0);
    case 1:
      return 0.5 * near(decisions[1] - decisions[2], 10);
    default:
      return 0.2 * (1 - 0.1 * decisions[5]);
  }
}

}  // namespace

SyntheticTask MakeSyntheticTask(uint64_t seed, int candidates, int columns) {
  SyntheticTask task;
  task.features.columns = columns;
  Rng rng(seed);
  for (int i = 0; i < candidates; ++i) {
    const int rows = kKinds - static_cast<int>(rng.Below(2));
    float decisions[kDecisions];
    for (float& decision : decisions) decision = static_cast<float>(rng.Below(kLevels));
    std::vector<float> values;
    double throughput = 0;
    for (int row = 0; row < rows; ++row) {
      decisions[kKind] = static_cast<float>(row);
      for (int column = 0; column < columns; ++column) {
        float value = decisions[FirstTerm(column)];
        if (column >= kDecisions) value += decisions[SecondTerm(column)];
        values.push_back(column >= kDecisions && column % 3 == 0 ? 1.0f : value);
      }
      throughput += StatementThroughput(decisions);
    }
    const bool failed = decisions[3] + decisions[4] > 8;
    task.features.Append(values, rows);
    task.throughput.push_back(failed ? 0 : throughput);
  }
  const double best = *std::max_element(task.throughput.begin(), task.throughput.end());
  for (double& throughput : task.throughput) throughput /= best;
  return task;
}

}  // namespace hone::cost_model

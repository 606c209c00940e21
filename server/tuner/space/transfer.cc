#include "server/tuner/space/transfer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/ir/index.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {
namespace {

using schedule::Operand;
using schedule::Site;

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

void AppendOperands(const std::vector<Operand>& operands, std::string& text) {
  for (const Operand& operand : operands) {
    absl::StrAppend(&text, " ", static_cast<int>(operand.kind), ":", operand.reg);
  }
}

constexpr size_t kMostRows = 4096;
constexpr int64_t kFactor = 8;  // range above and below for sizes that need not divide
constexpr double kOuterWeight = 0.01;

double LogRatio(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(std::max<int64_t>(a, 1))) -
                  std::log2(static_cast<double>(std::max<int64_t>(b, 1))));
}

// Enumerates the tiles of an extent from the last part outwards, sizes near the wanted ones first.
class TileLister {
 public:
  TileLister(const Site& site, absl::Span<const int64_t> wanted)
      : site_(site), wanted_(wanted), values_(site.count, 1) {}

  std::vector<std::vector<int64_t>> List() && {
    Part(site_.count - 1, site_.extent);
    return std::move(rows_);
  }

 private:
  // `rest`: iterations shared by this part and the outer ones.
  void Part(int part, int64_t rest) {
    if (rows_.size() >= kMostRows) return;
    if (part == 0) {
      values_[0] = rest;
      rows_.push_back(values_);
      return;
    }
    for (const int64_t size : Sizes(part, rest)) {
      values_[part] = size;
      Part(part - 1, ir::CeilDivInt(rest, size));
    }
  }

  std::vector<int64_t> Sizes(int part, int64_t rest) const {
    int64_t limit = rest;
    if (part == site_.count - 1 && site_.max_inner > 0) limit = std::min(limit, site_.max_inner);
    std::vector<int64_t> sizes;
    if (site_.kind == Site::Kind::kPerfectTile) {
      for (int64_t d = 1; d * d <= rest; ++d) {
        if (rest % d != 0) continue;
        if (d <= limit) sizes.push_back(d);
        if (d * d != rest && rest / d <= limit) sizes.push_back(rest / d);
      }
    } else {
      const int64_t wanted = std::clamp<int64_t>(wanted_[part], 1, limit);
      sizes.push_back(wanted);
      for (int64_t size = std::max<int64_t>(1, wanted / kFactor);
           size <= std::min(limit, wanted * kFactor); ++size) {
        const int64_t tiles = ir::CeilDivInt(rest, size);
        if (size != wanted && size == ir::CeilDivInt(rest, tiles)) sizes.push_back(size);
      }
    }
    absl::c_sort(sizes, [&](int64_t a, int64_t b) {
      return std::pair(LogRatio(a, wanted_[part]), a) < std::pair(LogRatio(b, wanted_[part]), b);
    });
    return sizes;
  }

  const Site& site_;
  const absl::Span<const int64_t> wanted_;
  std::vector<int64_t> values_;
  std::vector<std::vector<int64_t>> rows_;
};

double TileDistance(absl::Span<const int64_t> values, absl::Span<const int64_t> wanted) {
  double distance = kOuterWeight * LogRatio(values[0], wanted[0]);
  for (size_t i = 1; i < values.size(); ++i) distance += LogRatio(values[i], wanted[i]);
  return distance;
}

double RowDistance(absl::Span<const int64_t> values, absl::Span<const int64_t> wanted) {
  if (values == wanted) return 0;
  double distance = 1e-3;  // so that −1 and 0 are not equal
  for (size_t i = 0; i < values.size(); ++i)
    distance += LogRatio(std::abs(values[i]) + 1, std::abs(wanted[i]) + 1);
  return distance;
}

}  // namespace

double WorkloadDistance(const ir::Workload& a, const ir::Workload& b) {
  if (const std::optional<double> distance = FormDistance(a, b)) return *distance;
  if (!HasContraction(a) || !HasContraction(b)) return std::numeric_limits<double>::infinity();
  return kOtherForm + LogRatio(FlopCount(a), FlopCount(b));
}

std::string StructureOf(const schedule::Trace& trace) {
  std::string text;
  for (const schedule::Instruction& instruction : trace.instructions) {
    absl::StrAppend(&text, instruction.primitive->name, "(");
    AppendOperands(instruction.operands, text);
    absl::StrAppend(&text, ") ", instruction.decision_count, " ->");
    AppendOperands(instruction.results, text);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b) {
  int equal = 0;
  const size_t count = std::min(a.instructions.size(), b.instructions.size());
  for (size_t i = 0; i < count; ++i) equal += a.instructions[i] == b.instructions[i];
  return equal;
}

std::vector<std::vector<int64_t>> NearestValues(const Site& site,
                                                absl::Span<const int64_t> wanted) {
  std::vector<std::vector<int64_t>> rows;
  const bool choice = site.kind == Site::Kind::kChoice;
  if (choice) {
    for (size_t i = 0; i + site.count <= site.rows.size(); i += site.count)
      rows.emplace_back(site.rows.begin() + i, site.rows.begin() + i + site.count);
  } else {
    rows = TileLister(site, wanted).List();
  }
  std::vector<std::pair<double, std::vector<int64_t>>> ranked;
  for (std::vector<int64_t>& row : rows) {
    const double distance = choice ? RowDistance(row, wanted) : TileDistance(row, wanted);
    ranked.emplace_back(distance, std::move(row));
  }
  absl::c_sort(ranked);
  for (size_t i = 0; i < ranked.size(); ++i) rows[i] = std::move(ranked[i].second);
  return rows;
}

void NearestChooser::Begin(Rng&) {
  ++restarts_;
  listed_ = -1;
}

void NearestChooser::Choose(const Site& site, int index, int attempt, Rng& rng,
                            absl::Span<int64_t> values) {
  if (listed_ != index) {
    rows_ = NearestValues(site, wanted_.subspan(site.begin, site.count));
    listed_ = index;
  }
  // If no value at the last site of a constraint met it, earlier sites must move.
  const size_t farther = restarts_ > 0 ? rng.Below(static_cast<uint64_t>(restarts_) / 4 + 2) : 0;
  const size_t place = std::min(rows_.size() - 1, static_cast<size_t>(attempt) + farther);
  absl::c_copy(rows_[place], values.begin());
}

}  // namespace hone::space

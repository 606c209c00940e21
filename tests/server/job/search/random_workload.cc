#include "tests/server/job/search/random_workload.h"

#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/job/search/task_search.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/search/evaluator.h"

namespace hone::job {
namespace {

struct Matrix {
  std::string name;
  int64_t rows = 0, columns = 0;
};

class Writer {
 public:
  explicit Writer(uint64_t seed) : rng_(0x64726166, seed) {}

  std::string Write(int stages) {
    const int64_t rows = Extent(), columns = Extent();
    known_.push_back({"X", rows, columns});
    inputs_ = absl::StrCat("input X: f32[", rows, ", ", columns, "]\n");
    // Some workloads use one kind of stage only.
    const uint64_t only = rng_.Below(3) == 0 ? rng_.Below(kKinds) : kKinds;
    while (static_cast<int>(lines_.size()) < stages) Add(only < kKinds ? only : rng_.Below(kKinds));
    std::string text = absl::StrCat("workload random\n", inputs_);
    for (const auto& [name, line] : lines_)
      absl::StrAppend(&text, read_.contains(name) ? "" : "output ", line, "\n");
    return text;
  }

 private:
  static constexpr uint64_t kKinds = 7;

  int64_t Extent() {
    constexpr int64_t kExtents[] = {1, 4, 7, 16, 24, 33, 48, 64, 96};
    return kExtents[rng_.Below(std::size(kExtents))];
  }

  // Mostly the latest matrix.
  Matrix Pick() {
    const size_t back = rng_.Below(4) == 0 ? rng_.Below(std::min<size_t>(known_.size(), 8)) : 0;
    const Matrix picked = known_[known_.size() - 1 - back];
    read_.insert(picked.name);
    return picked;
  }

  std::string Input(int64_t rows, int64_t columns) {
    const std::string name = absl::StrCat("W", weights_++);
    absl::StrAppend(&inputs_, "input ", name, ": f32[", rows, ", ", columns, "]",
                    rng_.Below(3) == 0 ? "" : " constant", "\n");
    return name;
  }

  void Stage(int64_t rows, int64_t columns, const std::string& value) {
    const std::string name = absl::StrCat("T", lines_.size());
    lines_.emplace_back(name, absl::StrCat(name, "[i: ", rows, ", j: ", columns, "] = ", value));
    known_.push_back({name, rows, columns});
  }

  void Add(uint64_t kind) {
    const Matrix x = Pick();
    const std::string at = absl::StrCat(x.name, "[i, j]");
    switch (kind) {
      case 0: {
        const std::string values[] = {
            absl::StrCat("max(", at, ", 0.0)"), absl::StrCat("tanh(", at, ") * 0.5"),
            absl::StrCat("exp(min(", at, ", 1.0)) * 0.25"), absl::StrCat(at, " * 0.5 + 0.125")};
        return Stage(x.rows, x.columns, values[rng_.Below(std::size(values))]);
      }
      case 1: {  // with another matrix of the same shape
        std::vector<std::string> same;
        for (const Matrix& other : known_) {
          if (other.rows == x.rows && other.columns == x.columns) same.push_back(other.name);
        }
        const std::string& other = same[rng_.Below(same.size())];
        read_.insert(other);
        return Stage(
            x.rows, x.columns,
            absl::StrCat("(", at, rng_.Below(2) == 0 ? " + " : " - ", other, "[i, j]) * 0.5"));
      }
      case 2:
        return Stage(x.columns, x.rows, absl::StrCat(x.name, "[j, i]"));
      case 3: {  // a reduction of rows, and its use
        const std::string reduced = absl::StrCat("R", lines_.size());
        lines_.emplace_back(reduced, absl::StrCat(reduced, "[i: ", x.rows,
                                                  "] = ", rng_.Below(2) == 0 ? "max" : "sum",
                                                  "(k: ", x.columns, ") ", x.name, "[i, k]"));
        read_.insert(reduced);
        return Stage(x.rows, x.columns, absl::StrCat("(", at, " - ", reduced, "[i]) * 0.03125"));
      }
      case 4:
      case 5: {  // a product
        const int64_t columns = rng_.Below(2) == 0 ? x.columns : Extent();
        const std::string w = Input(x.columns, columns);
        return Stage(x.rows, columns,
                     absl::StrCat("sum(k: ", x.columns, ") ", x.name, "[i, k] * ", w, "[k, j]"));
      }
      default: {  // a window, or a convolution along the rows
        if (x.columns < 4) return Stage(x.rows, x.columns, absl::StrCat("abs(", at, ")"));
        const bool convolves = rng_.Below(2) == 0;
        const std::string w = convolves ? Input(1, 3) : "";
        return Stage(x.rows, x.columns - 2,
                     convolves ? absl::StrCat("sum(k: 3) ", x.name, "[i, j + k] * ", w, "[0, k]")
                               : absl::StrCat("max(k: 3) ", x.name, "[i, j + k]"));
      }
    }
  }

  Rng rng_;
  int weights_ = 0;
  std::string inputs_;
  std::vector<Matrix> known_;
  std::vector<std::pair<std::string, std::string>> lines_;  // name, and text without "output"
  std::set<std::string> read_;
};

double SecondsSince(absl::Time begin) { return absl::ToDoubleSeconds(absl::Now() - begin); }

}  // namespace

std::string RandomWorkload(uint64_t seed, int stages) { return Writer(seed).Write(stages); }

absl::Status DraftOnce(const TaskEnvironment& environment, const std::string& workload,
                       const std::string& preset, DraftCase& drafted,
                       std::shared_ptr<const cost_model::CostModel> draft) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::TargetByName(preset));
  HONE_ASSIGN_OR_RETURN(const WorkloadInfo described, environment.Describe(workload));
  absl::Time begin = absl::Now();
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSpaces> spaces,
                        environment.Open(described.text, target.ToText(), "", /*tolerance=*/0,
                                         /*check=*/nullptr, std::move(draft)));
  drafted.spaces_s = SecondsSince(begin);
  drafted.spaces = spaces->spaces().size();
  const JobSpec spec{.strategy = environment.default_strategy(),
                     .cost_model = environment.default_cost_model()};
  begin = absl::Now();
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<TaskSearch> search,
      TaskSearch::Create(&environment, spaces.get(), SearchOptionsOf(spec), /*prior=*/{}));
  HONE_RETURN_IF_ERROR(search->Propose(BatchSizeOf(spec, JobOptions{})).status());
  drafted.propose_s = SecondsSince(begin);
  if (search->trials().empty()) return absl::InternalError("nothing was proposed");
  const record::Candidate& first = search->trials().begin()->second;
  for (const SpaceInfo& space : spaces->spaces()) {
    if (space.digest != first.space_digest) continue;
    HONE_ASSIGN_OR_RETURN(drafted.trace, environment.TraceText(space.text, first.decisions));
  }
  const absl::StatusOr<double> cycles = EstimateOf(drafted.trace, preset);
  if (!cycles.ok()) return absl::InternalError(cycles.status().message());
  drafted.cycles = *cycles;
  return absl::OkStatus();
}

absl::StatusOr<double> EstimateOf(const std::string& trace, const std::string& preset) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::TargetByName(preset));
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(trace));
  HONE_ASSIGN_OR_RETURN(const ir::Program program,
                        schedule::Replay(std::make_shared<const ir::Workload>(file.workload),
                                         file.parsed.trace, file.parsed.decisions));
  return 1 / search::DraftScoreOf(*cost_model::MakeModel(cost_model::kDraftModel), program, target);
}

absl::Status CheckDraft(const std::string& trace, uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
  const auto workload = std::make_shared<const ir::Workload>(std::move(file.workload));
  HONE_ASSIGN_OR_RETURN(const ir::Program program,
                        schedule::Replay(workload, file.parsed.trace, file.parsed.decisions));
  Rng rng(0x636865636b, seed);
  std::vector<ir::Values> inputs;
  for (const ir::BufferId input : workload->Inputs()) {
    ir::Values& values = inputs.emplace_back();
    for (int64_t e = 0; e < ir::ElementsOf(workload->tensors[input].shape); ++e)
      values.push_back((static_cast<double>(rng.Below(17)) - 8) / 16);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Values> wanted, ir::Interpret(*workload, inputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Values> got, ir::Interpret(program, inputs));
  for (size_t o = 0; o < wanted.size(); ++o) {
    double largest = 0;
    for (const double value : wanted[o]) largest = std::max(largest, std::abs(value));
    for (size_t e = 0; e < wanted[o].size(); ++e) {
      // Differences of nearly equal sums are rounding errors of their terms.
      if (std::abs(got[o][e] - wanted[o][e]) <= 1e-3 * largest + 1e-7) continue;
      return absl::InternalError(
          absl::StrCat("output ", o, " has ", got[o][e], " at ", e, " instead of ", wanted[o][e]));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::job

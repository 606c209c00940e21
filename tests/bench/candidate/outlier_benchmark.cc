// Where the draft's estimate is far from the truth: builds and times random candidates of each
// family of operators on one thread, and divides the time by the estimate. A candidate whose
// quotient is more than three times that of its family's median has a cost that the estimate does
// not know. Prints a line of a table for each family, and for each such candidate its space and
// decisions.
//
// With --of N, N candidates of each space are drawn, and those with the least estimates are timed
// and listed, fastest first: what a space holds beside what the draft would choose. With --drafted,
// only the schedule that a search begins with is timed.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/draft_work.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/space/generate.h"
#include "tests/bench/candidate/timed_kernel.h"
#include "tests/server/job/search/random_workload.h"
#include "tests/temporary_folder.h"

namespace hone::bench {
namespace {

const char* const kFamilies[] = {
    "matmul m=123 n=200 k=256",
    "matmul m=96 n=144 k=160 dtype=bf16 acc=f32",
    "batch_matmul b=3 m=60 n=77 k=96",
    "dense_gelu m=64 n=200 k=128",
    "conv1d n=1 l=200 ci=32 co=48 k=3 s=1 p=1",
    "conv2d n=1 h=20 w=23 ci=24 co=40 k=3 s=1 p=1",
    "conv2d_nchw n=1 h=20 w=20 ci=16 co=32 k=3 s=2 p=1",
    "depthwise_conv2d n=1 h=30 w=30 c=48 k=3 s=1 p=1",
    "conv2d_transpose n=1 h=8 w=8 ci=32 co=24 k=4 s=2 p=1",
    "max_pool2d n=1 h=40 w=40 c=40 k=3 s=2 p=1",
    "softmax m=150 n=197",
    "layer_norm m=100 n=300",
    "reduce_sum m=200 n=333",
    "argmax m=200 n=333",
    "transpose m=300 n=200",
    "gelu m=100 n=333",
    "add_relu m=200 n=333",
    "attention b=1 h=2 s=48 d=40",
    "quantized_matmul m=64 n=96 k=128",
};

struct Timed {
  std::string space;
  std::vector<int64_t> decisions;
  double quotient;  // nanoseconds per estimated cycle
  double cycles;    // the estimate
  std::string trace_file;
};

// Estimates the cycles of candidates on a target.
struct Draft {
  std::shared_ptr<const cost_model::CostModel> model;
  target::Target target;
  double Cycles(const ir::Program& program) const {
    return 1 / search::DraftScoreOf(*model, program, target);
  }
};

// Returns the estimate with the constants of the kind of CPU or, if `learned`, the draft that comes
// with the program.
absl::StatusOr<Draft> DraftFor(const target::Target& target, bool learned) {
  if (!learned) return Draft{cost_model::MakeModel(cost_model::kDraftModel), target};
  const auto environment = job::MakeCompilerEnvironment(/*threads=*/1);
  Draft draft{job::LoadDraft(/*store=*/nullptr, *environment, /*id=*/0, target.ToText()), target};
  if (draft.model == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no draft comes with the program for ", target.cpu, "; leave out --learned"));
  }
  return draft;
}

class Hunt {
 public:
  // `traces`: a folder for the schedules of outliers, or empty. `of`: how many candidates of each
  // space are drawn, of which `candidates` are timed; 0: those that are timed are drawn at random.
  Hunt(Draft draft, std::string folder, std::string traces, int candidates, int of, int seed)
      : draft_(std::move(draft)),
        folder_(std::move(folder)),
        traces_(std::move(traces)),
        candidates_(candidates),
        of_(of),
        seed_(seed) {}

  absl::Status Family(const std::string& text) {
    std::vector<std::string> words = absl::StrSplit(text, ' ');
    const std::string op = words[0];
    words.erase(words.begin());
    HONE_ASSIGN_OR_RETURN(ir::Workload built, op::BuildWorkload(op, words));
    const auto workload = std::make_shared<const ir::Workload>(std::move(built));
    HONE_ASSIGN_OR_RETURN(const auto spaces, space::GenerateDesignSpaces(workload, draft_.target));
    std::vector<Timed> timed;
    HONE_ASSIGN_OR_RETURN(const std::vector<Drawn> drawn, of_ > 0 ? Least(spaces) : Random(spaces));
    for (const auto& [space, decisions, cycles] : drawn) {
      const absl::StatusOr<double> nanoseconds = Nanoseconds(*space, decisions);
      if (!nanoseconds.ok()) continue;
      timed.push_back({space->name(), decisions, *nanoseconds / cycles, cycles,
                       schedule::TraceFileText(*workload, space->trace(), decisions)});
    }
    if (timed.empty()) return absl::InternalError(absl::StrCat(text, ": nothing could be timed"));
    std::sort(timed.begin(), timed.end(),
              [](const Timed& a, const Timed& b) { return a.quotient < b.quotient; });
    const double median = timed[timed.size() / 2].quotient;
    std::printf("| %s | %zu | %.2f | %.2f | %.2f | %.2f |\n", text.c_str(), timed.size(), median,
                timed.front().quotient / median, timed[timed.size() * 9 / 10].quotient / median,
                timed.back().quotient / median);
    if (of_ > 0) {
      absl::c_sort(timed, [](const Timed& a, const Timed& b) {
        return a.quotient * a.cycles < b.quotient * b.cycles;
      });
    }
    for (const Timed& each : timed) {
      const double times = each.quotient / median;
      if (of_ > 0) {
        std::printf("  %.1f us, %.4g cycles: %s [%s]\n", each.quotient * each.cycles / 1e3,
                    each.cycles, each.space.c_str(), absl::StrJoin(each.decisions, ", ").c_str());
      } else if (times >= kFar || times <= 1 / kFar) {
        std::printf("  %.2f: %s [%s]\n", times, each.space.c_str(),
                    absl::StrJoin(each.decisions, ", ").c_str());
      } else {
        continue;
      }
      if (traces_.empty()) continue;
      HONE_RETURN_IF_ERROR(WriteFileAtomically(
          absl::StrCat(traces_, "/", op, "_", absl::StrJoin(each.decisions, "_"), ".trace"),
          each.trace_file));
    }
    std::fflush(stdout);
    return absl::OkStatus();
  }

 private:
  static constexpr double kFar = 3;

  using Spaces = std::vector<std::unique_ptr<space::DesignSpace>>;
  struct Drawn {
    const space::DesignSpace* space;
    std::vector<int64_t> decisions;
    double cycles;
  };

  absl::StatusOr<Drawn> Draw(const space::DesignSpace& space, Rng& rng) const {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> decisions, space.Sample(rng));
    HONE_ASSIGN_OR_RETURN(const ir::Program program, space.Replay(decisions));
    return Drawn{&space, decisions, draft_.Cycles(program)};
  }

  absl::StatusOr<std::vector<Drawn>> Random(const Spaces& spaces) const {
    std::vector<Drawn> drawn;
    for (int i = 0; i < candidates_; ++i) {
      Rng rng(seed_, i);
      const space::DesignSpace& space = *spaces[rng.Below(spaces.size())];
      HONE_ASSIGN_OR_RETURN(drawn.emplace_back(), Draw(space, rng));
    }
    return drawn;
  }

  // Returns the candidates with the least estimates of each space.
  absl::StatusOr<std::vector<Drawn>> Least(const Spaces& spaces) const {
    std::vector<Drawn> least;
    for (const auto& space : spaces) {
      std::vector<Drawn> drawn;
      for (int i = 0; i < of_; ++i) {
        Rng rng(seed_, i);
        absl::StatusOr<Drawn> one = Draw(*space, rng);
        const bool known = one.ok() && absl::c_any_of(drawn, [&](const Drawn& other) {
                             return other.decisions == one->decisions;
                           });
        if (one.ok() && !known) drawn.push_back(*std::move(one));
      }
      absl::c_sort(drawn, [](const Drawn& a, const Drawn& b) { return a.cycles < b.cycles; });
      drawn.resize(std::min<size_t>(drawn.size(), candidates_));
      least.insert(least.end(), drawn.begin(), drawn.end());
    }
    return least;
  }

  absl::StatusOr<double> Nanoseconds(const space::DesignSpace& space,
                                     const std::vector<int64_t>& decisions) {
    HONE_ASSIGN_OR_RETURN(
        const auto kernel,
        TimedKernel::Build(*space.workload(),
                           schedule::TraceFileText(*space.workload(), space.trace()), decisions,
                           draft_.target, folder_));
    HONE_RETURN_IF_ERROR(kernel->Load());
    double best = INFINITY;
    for (int round = 0; round < 5; ++round) best = std::min(best, kernel->Nanoseconds(0.001));
    return best;
  }

  const Draft draft_;
  const std::string folder_, traces_;
  const int candidates_, of_, seed_;
};

// Prints the time of a schedule and its estimate.
absl::Status TimeTrace(const std::string& path, const Draft& draft, const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(text));
  HONE_ASSIGN_OR_RETURN(const ir::Program program,
                        schedule::Replay(std::make_shared<const ir::Workload>(file.workload),
                                         file.parsed.trace, file.parsed.decisions));
  HONE_ASSIGN_OR_RETURN(
      const auto kernel,
      TimedKernel::Build(file.workload, schedule::TraceFileText(file.workload, file.parsed.trace),
                         file.parsed.decisions, draft.target, folder));
  HONE_RETURN_IF_ERROR(kernel->Load());
  double best = INFINITY;
  for (int round = 0; round < 7; ++round) best = std::min(best, kernel->Nanoseconds(0.004));
  std::printf("%s: %.1f us, %.4g cycles\n", path.c_str(), best / 1e3, draft.Cycles(program));
  return absl::OkStatus();
}

// Prints the time of the schedule that a search begins with.
absl::Status TimeDraft(const std::string& text, const Draft& draft, bool learned,
                       const std::string& traces, const std::string& folder) {
  std::vector<std::string> words = absl::StrSplit(text, ' ');
  const std::string op = words[0];
  words.erase(words.begin());
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, op::BuildWorkload(op, words));
  job::DraftCase drafted;
  HONE_RETURN_IF_ERROR(job::DraftOnce(*job::MakeCompilerEnvironment(/*threads=*/1),
                                      workload.ToText(), "native", drafted,
                                      learned ? draft.model : nullptr));
  const std::string path = absl::StrCat(traces.empty() ? folder : traces, "/", op, "_",
                                        absl::StrJoin(words, "_"), ".trace");
  HONE_RETURN_IF_ERROR(WriteFileAtomically(path, drafted.trace));
  return TimeTrace(path, draft, folder);
}

int Main(int argc, char** argv) {
  int candidates = 40, of = 0, seed = 1;
  std::string traces;
  std::vector<std::string> schedules;
  bool learned = false, drafted = false;
  std::vector<std::string> families(std::begin(kFamilies), std::end(kFamilies)), given;
  Command app("Compares the draft's estimates with times, and prints the outliers.",
              "outlier_benchmark");
  app.Add("--candidates", candidates, "Random candidates of each family",
          {Positive(), ShowDefault()});
  app.Add(
      "--of", of,
      "Draw this many candidates of each space, and time and list those with the least estimates",
      {Positive()});
  app.AddFlag("--drafted", drafted, "Time what a search begins with, and nothing else");
  app.AddFlag("--learned", learned, "Estimate with the draft that comes with the program");
  app.Add("--schedule", schedules, "FILE.trace to time instead; may be repeated",
          {OneWordPerUse()});
  app.Add("--seed", seed, "Seed of the draws", {ShowDefault()});
  app.Add("--traces", traces, "FOLDER for the schedules of outliers", {ExistingFolder()});
  app.Add("--family", given, "Operators as one word each, as in \"softmax m=64 n=100\"",
          {OneWordPerUse()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (!given.empty()) families = given;
  target::Target target = target::DetectHost();
  target.cores = 1;
  const TemporaryFolder folder;
  const absl::StatusOr<Draft> draft = DraftFor(target, learned);
  if (!draft.ok()) {
    std::fprintf(stderr, "outlier_benchmark: %s\n", std::string(draft.status().message()).c_str());
    return 1;
  }
  for (const std::string& schedule : schedules) {
    const absl::Status status = TimeTrace(schedule, *draft, folder.path());
    if (status.ok()) continue;
    std::fprintf(stderr, "outlier_benchmark: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  if (!schedules.empty()) return 0;
  if (drafted) {
    for (const std::string& family : families) {
      const absl::Status status = TimeDraft(family, *draft, learned, traces, folder.path());
      if (status.ok()) continue;
      std::fprintf(stderr, "outlier_benchmark: %s: %s\n", family.c_str(),
                   std::string(status.message()).c_str());
      return 1;
    }
    return 0;
  }
  std::printf(
      "| operator | candidates | ns per estimated cycle | least | 90 %% | most "
      "|\n|---|---|---|---|---|---|\n");
  Hunt hunt(*draft, folder.path(), traces, candidates, of, seed);
  int failed = 0;
  for (const std::string& family : families) {
    const absl::Status status = hunt.Family(family);
    if (status.ok()) continue;
    std::fprintf(stderr, "outlier_benchmark: %s\n", std::string(status.message()).c_str());
    failed = 1;
  }
  return failed;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }

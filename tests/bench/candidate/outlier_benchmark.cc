// Where the draft's estimate is far from the truth: builds and times random candidates of each
// family of operators on one thread, and divides the time by the estimate. A candidate whose
// quotient is more than three times that of its family's median has a cost that the estimate does
// not know. Prints a line of a table for each family, and for each such candidate its space and
// decisions.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"
#include "server/tuner/space/generate.h"
#include "tests/bench/candidate/timed_kernel.h"
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
  std::string trace_file;
};

class Hunt {
 public:
  // `traces`: a folder for the schedules of outliers, or empty.
  Hunt(target::Target target, std::string folder, std::string traces, int candidates, int seed)
      : target_(std::move(target)),
        folder_(std::move(folder)),
        traces_(std::move(traces)),
        candidates_(candidates),
        seed_(seed) {}

  absl::Status Family(const std::string& text) {
    std::vector<std::string> words = absl::StrSplit(text, ' ');
    const std::string op = words[0];
    words.erase(words.begin());
    HONE_ASSIGN_OR_RETURN(ir::Workload built, op::BuildWorkload(op, words));
    const auto workload = std::make_shared<const ir::Workload>(std::move(built));
    HONE_ASSIGN_OR_RETURN(const auto spaces, space::GenerateDesignSpaces(workload, target_));
    std::vector<Timed> timed;
    for (int i = 0; i < candidates_; ++i) {
      Rng rng(seed_, i);
      const space::DesignSpace& space = *spaces[rng.Below(spaces.size())];
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> decisions, space.Sample(rng));
      const absl::StatusOr<double> quotient = Quotient(space, decisions);
      if (!quotient.ok()) continue;
      timed.push_back({space.name(), decisions, *quotient,
                       schedule::TraceFileText(*workload, space.trace(), decisions)});
    }
    if (timed.empty()) return absl::InternalError(absl::StrCat(text, ": nothing could be timed"));
    std::sort(timed.begin(), timed.end(),
              [](const Timed& a, const Timed& b) { return a.quotient < b.quotient; });
    const double median = timed[timed.size() / 2].quotient;
    std::printf("| %s | %zu | %.2f | %.2f | %.2f | %.2f |\n", text.c_str(), timed.size(), median,
                timed.front().quotient / median, timed[timed.size() * 9 / 10].quotient / median,
                timed.back().quotient / median);
    for (const Timed& each : timed) {
      const double times = each.quotient / median;
      if (times < kFar && times > 1 / kFar) continue;
      std::printf("  %.2f: %s [%s]\n", times, each.space.c_str(),
                  absl::StrJoin(each.decisions, ", ").c_str());
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

  absl::StatusOr<double> Quotient(const space::DesignSpace& space,
                                  const std::vector<int64_t>& decisions) {
    HONE_ASSIGN_OR_RETURN(const ir::Program program, space.Replay(decisions));
    feature::Nest nest;
    HONE_RETURN_IF_ERROR(nest.Analyze(program));
    const double cycles = feature::EstimateCost(nest, feature::AnalyticMachine::Of(target_)).cycles;
    HONE_ASSIGN_OR_RETURN(
        const auto kernel,
        TimedKernel::Build(*space.workload(),
                           schedule::TraceFileText(*space.workload(), space.trace()), decisions,
                           target_, folder_));
    HONE_RETURN_IF_ERROR(kernel->Load());
    double best = INFINITY;
    for (int round = 0; round < 5; ++round) best = std::min(best, kernel->Nanoseconds(0.001));
    return best / cycles;
  }

  const target::Target target_;
  const std::string folder_, traces_;
  const int candidates_, seed_;
};

int Main(int argc, char** argv) {
  int candidates = 40, seed = 1;
  std::string traces;
  std::vector<std::string> families(std::begin(kFamilies), std::end(kFamilies)), given;
  Command app("Compares the draft's estimates with times, and prints the outliers.",
              "outlier_benchmark");
  app.Add("--candidates", candidates, "Random candidates of each family",
          {Positive(), ShowDefault()});
  app.Add("--seed", seed, "Seed of the draws", {ShowDefault()});
  app.Add("--traces", traces, "FOLDER for the schedules of outliers", {ExistingFolder()});
  app.Add("--family", given, "Operators as one word each, as in \"softmax m=64 n=100\"",
          {OneWordPerUse()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (!given.empty()) families = given;
  target::Target target = target::DetectHost();
  target.cores = 1;
  const TemporaryFolder folder;
  std::printf(
      "| operator | candidates | ns per estimated cycle | least | 90 %% | most "
      "|\n|---|---|---|---|---|---|\n");
  Hunt hunt(target, folder.path(), traces, candidates, seed);
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

// What padding costs. Draws random convolutions or windows, and candidates of each: the one that a
// search begins with, and random ones. Prints a line of JSON per candidate: the stores of its
// code that still test the padding, the processor time of its build, and the processor time of its
// kernel next to that of the same schedule without padding, on an input that is padded ahead of
// time.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/command_line.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/bench/candidate/timed_kernel.h"
#include "tests/temporary_folder.h"
#include "worker/compile/lower/lower.h"

namespace hone::bench {
namespace {

struct Options {
  std::string op = "conv2d";
  std::string target = "native";
  int first = 0;
  int draws = 30;
  int candidates = 8;  // random ones of each draw
  int seed = 1;
  int rounds = 0;
};

// An operator with a window and padding, or the same without padding on a larger image.
struct Window {
  int64_t h, w, ci, co, k, s, p, dil;
  std::vector<std::string> Words(absl::string_view op, bool padded) const {
    const bool convolves = absl::StartsWith(op, "conv2d");
    std::vector<std::string> words = {"n=1", absl::StrCat("h=", padded ? h : h + 2 * p),
                                      absl::StrCat("w=", padded ? w : w + 2 * p)};
    if (convolves) words.push_back(absl::StrCat("ci=", ci));
    words.push_back(absl::StrCat(convolves ? "co=" : "c=", co));
    words.insert(words.end(), {absl::StrCat("k=", k), absl::StrCat("s=", s),
                               absl::StrCat("p=", padded ? p : 0)});
    if (!absl::EndsWith(op, "pool2d")) words.push_back(absl::StrCat("dil=", dil));
    return words;
  }
};

int64_t OneOf(Rng& rng, const std::vector<int64_t>& values) {
  return values[rng.Below(values.size())];
}

Window Draw(Rng& rng, absl::string_view op) {
  for (;;) {
    Window c{};
    c.h = 7 + static_cast<int64_t>(rng.Below(106));
    c.w = rng.Below(2) == 0 ? c.h : OneOf(rng, {7, 14, 28, 56, 112});
    c.ci = OneOf(rng, {3, 16, 32, 64, 128});
    c.co = OneOf(rng, {16, 32, 64, 128});
    c.k = OneOf(rng, {1, 3, 3, 3, 5, 7});
    c.s = OneOf(rng, {1, 1, 2});
    c.p = 1 + static_cast<int64_t>(rng.Below(3));
    c.dil = OneOf(rng, {1, 1, 1, 2});
    const int64_t reach = c.dil * (c.k - 1);
    if (c.p > std::max<int64_t>(1, reach) || reach >= std::min(c.h, c.w)) continue;
    if (absl::EndsWith(op, "pool2d") && (c.dil > 1 || c.p >= c.k)) continue;
    // At most some milliseconds.
    if (c.h * c.w / (c.s * c.s) * c.ci * c.co * c.k * c.k > 200'000'000) continue;
    return c;
  }
}

// The reduction stores of the code, and those that test a guard at run time: in branches or lanes.
struct Stores {
  int all = 0, guarded = 0;
};

void Count(const lower::LoweredProgram& program, lower::StmtId id, std::vector<bool>& is_static,
           Stores& stores) {
  if (id == lower::kNoStmt) return;
  const lower::Stmt& stmt = program.stmts[id];
  if (stmt.kind == lower::Stmt::Kind::kFor)
    is_static[stmt.var] = lower::LoweredProgram::IsStatic(stmt.loop);
  for (const lower::StmtId child : stmt.children) Count(program, child, is_static, stores);
  if (stmt.kind != lower::Stmt::Kind::kStore || stmt.reducer == ir::Reducer::kNone) return;
  ++stores.all;
  bool tests = false;
  for (const ir::Condition& guard : stmt.guards) {
    program.atoms.VisitVars(guard.index, [&](ir::AtomId var) { tests |= !is_static[var]; });
  }
  stores.guarded += tests;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(const Options& options, target::Target target, std::string folder)
      : options_(options), target_(std::move(target)), folder_(std::move(folder)) {}

  absl::Status Run(const Window& window) {
    const std::vector<std::string> words = window.Words(options_.op, /*padded=*/true);
    const std::string op = absl::StrCat(options_.op, " ", absl::StrJoin(words, " "));
    HONE_ASSIGN_OR_RETURN(ir::Workload built, op::BuildWorkload(options_.op, words));
    HONE_ASSIGN_OR_RETURN(
        const ir::Workload unpadded,
        op::BuildWorkload(options_.op, window.Words(options_.op, /*padded=*/false)));
    const auto workload = std::make_shared<const ir::Workload>(std::move(built));
    HONE_ASSIGN_OR_RETURN(const auto spaces, space::GenerateDesignSpaces(workload, target_));
    search::SearchContext context{.target = target_, .seed = 1};
    for (const auto& space : spaces) context.spaces.push_back(space.get());
    HONE_ASSIGN_OR_RETURN(const auto search, search::CreateSearchStrategy("portfolio", context));
    HONE_ASSIGN_OR_RETURN(const auto first, search->Propose(1, 0, nullptr));
    for (const record::Candidate& candidate : first) {
      for (const auto& space : spaces) {
        if (space->digest() == candidate.space_digest)
          HONE_RETURN_IF_ERROR(Measure(op, unpadded, *space, candidate.decisions, "draft"));
      }
    }
    for (int i = 0; i < options_.candidates; ++i) {
      Rng rng(options_.seed, i);
      const space::DesignSpace& space = *spaces[rng.Below(spaces.size())];
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> decisions, space.Sample(rng));
      HONE_RETURN_IF_ERROR(Measure(op, unpadded, space, decisions, "random"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Measure(const std::string& op, const ir::Workload& unpadded,
                       const space::DesignSpace& space, const std::vector<int64_t>& decisions,
                       const char* kind) {
    const absl::StatusOr<ir::Program> program = space.Replay(decisions);
    if (!program.ok()) return absl::OkStatus();  // an invalid candidate; tests count these
    const absl::StatusOr<lower::LoweredProgram> lowered = lower::Lower(*program, target_, {});
    if (!lowered.ok()) return absl::OkStatus();
    Stores stores;
    std::vector<bool> is_static(lowered->atoms.size());
    Count(*lowered, lowered->kernels.back().body, is_static, stores);
    feature::Nest nest;
    HONE_RETURN_IF_ERROR(nest.Analyze(*program));
    nlohmann::ordered_json line{
        {"operator", op},
        {"kind", kind},
        {"space", space.name()},
        {"decisions", decisions},
        {"draft_cycles", feature::EstimateCost(nest, feature::AnalyticMachine::Of(target_)).cycles},
        {"stores", stores.all},
        {"guarded", stores.guarded}};
    const bool times = options_.rounds > 0;
    const std::string trace_file = schedule::TraceFileText(*space.workload(), space.trace());
    const auto with =
        TimedKernel::Build(*space.workload(), trace_file, decisions, target_, folder_);
    if (!with.ok()) return absl::OkStatus();  // the code would exceed a limit
    TimedKernel& padded_kernel = **with;
    line["build_ms"] = padded_kernel.build_milliseconds();
    line["object_bytes"] = padded_kernel.object_bytes();
    if (times) {
      HONE_RETURN_IF_ERROR(padded_kernel.Load());
      HONE_ASSIGN_OR_RETURN(
          const auto without,
          TimedKernel::Build(unpadded, schedule::TraceFileText(unpadded, space.trace()), decisions,
                             target_, folder_));
      HONE_RETURN_IF_ERROR(without->Load());
      std::vector<double> padded, plain, ratios;
      for (int round = 0; round < options_.rounds; ++round) {
        plain.push_back(without->Nanoseconds(kBlockSeconds));
        padded.push_back(padded_kernel.Nanoseconds(kBlockSeconds));
        ratios.push_back(padded.back() / plain.back());
      }
      line["padded_ns"] = Median(padded);
      line["unpadded_ns"] = Median(plain);
      line["ratio"] = Median(ratios);
    }
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
    return absl::OkStatus();
  }

  static constexpr double kBlockSeconds = 0.002;
  const Options options_;
  const target::Target target_;
  const std::string folder_;
};

absl::Status RunAll(const Options& options, const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(target::Target target, target::TargetByName(options.target));
  target.cores = 1;
  Bench bench(options, target, folder);
  for (int i = options.first; i < options.first + options.draws; ++i) {
    Rng rng(options.seed, 1000 + i);
    HONE_RETURN_IF_ERROR(bench.Run(Draw(rng, options.op)));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  Command app("Measures what padding costs operators with a window.", "padding_benchmark");
  app.Add("--operator", options.op, "Operator", {ShowDefault()});
  app.Add("--target", options.target, "Target; only native code can be timed", {ShowDefault()});
  app.Add("--first", options.first, "Number of the first draw", {Range(0, 100000)});
  app.Add("--draws", options.draws, "Windows to draw", {Range(1, 100000)});
  app.Add("--candidates", options.candidates, "Random candidates of each", {Range(0, 100000)});
  app.Add("--seed", options.seed, "Seed of the draws", {Range(0, 100000)});
  app.Add("--rounds", options.rounds, "Rounds of timing; 0 times nothing", {Range(0, 100000)});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  const TemporaryFolder folder;
  const absl::Status status = RunAll(options, folder.path());
  if (status.ok()) return 0;
  std::fprintf(stderr, "padding_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }

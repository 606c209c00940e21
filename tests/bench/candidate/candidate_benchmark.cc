// The cost of a candidate before it is timed: replaying its trace and building its artifact. Takes
// random candidates of all design spaces of an operator, one at a time. Prints a line of JSON per
// operator for bench_table. With --keep, the artifacts remain for artifact_sizes.py.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/store/tables.h"
#include "server/tuner/space/generate.h"
#include "tests/temporary_folder.h"
#include "worker/builder/build.h"

namespace hone::bench {
namespace {

const char* const kOperators[] = {
    "matmul m=1024 n=1024 k=1024",
    "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
    "conv2d n=1 h=56 w=56 ci=64 co=256 k=1 s=1 p=0",
};

struct Sample {
  double primitives = 0, replay_us = 0, compile_ms = 0, bytes = 0;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::vector<double> Column(const std::vector<Sample>& samples, double Sample::* member) {
  std::vector<double> column;
  for (const Sample& sample : samples) column.push_back(sample.*member);
  return column;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the slope of the least-squares line; 0 if all x are equal.
double Slope(const std::vector<double>& x, const std::vector<double>& y) {
  const double mean_x = Mean(x), mean_y = Mean(y);
  double covariance = 0, variance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    covariance += (x[i] - mean_x) * (y[i] - mean_y);
    variance += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return variance == 0 ? 0 : covariance / variance;
}

// Returns the fastest of a few replays: the time on an idle machine.
absl::StatusOr<double> ReplayMicroseconds(const space::DesignSpace& space,
                                          const std::vector<int64_t>& decisions) {
  constexpr int kReplays = 5;
  absl::Duration fastest = absl::InfiniteDuration();
  for (int i = 0; i < kReplays; ++i) {
    const absl::Time begin = absl::Now();
    HONE_RETURN_IF_ERROR(space.Replay(decisions).status());
    fastest = std::min(fastest, absl::Now() - begin);
  }
  return absl::ToDoubleMicroseconds(fastest);
}

absl::StatusOr<nlohmann::ordered_json> Measure(const std::string& op, const target::Target& target,
                                               int candidates, const std::string& folder) {
  std::vector<std::string> words = absl::StrSplit(op, ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  HONE_ASSIGN_OR_RETURN(ir::Workload built, op::BuildWorkload(name, words));
  const auto workload = std::make_shared<const ir::Workload>(std::move(built));
  HONE_ASSIGN_OR_RETURN(const auto spaces, space::GenerateDesignSpaces(workload, target));
  std::vector<Sample> samples;
  for (int i = 0; i < candidates; ++i) {
    const space::DesignSpace& space = *spaces[i % spaces.size()];
    Rng rng(7, i);
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> decisions, space.Sample(rng));
    const absl::StatusOr<double> replay_us = ReplayMicroseconds(space, decisions);
    if (!replay_us.ok()) continue;  // an invalid candidate; tests count these
    const absl::Time begin = absl::Now();
    const record::BuildResponse response = builder::Build({.workload = workload->ToText(),
                                                           .space = space.text(),
                                                           .decisions = decisions,
                                                           .target = target.ToText(),
                                                           .artifact_dir = folder});
    const absl::Duration compile = absl::Now() - begin;
    if (response.outcome != record::Outcome::kOk) continue;
    samples.push_back({.primitives = static_cast<double>(space.trace().instructions.size()),
                       .replay_us = *replay_us,
                       .compile_ms = absl::ToDoubleMilliseconds(compile),
                       .bytes = static_cast<double>(store::EncodeDecisions(decisions).size())});
  }
  if (samples.empty()) return absl::InternalError(absl::StrCat(op, ": no candidate was built"));
  const std::vector<double> replay = Column(samples, &Sample::replay_us);
  const std::vector<double> compile = Column(samples, &Sample::compile_ms);
  return nlohmann::ordered_json{
      {"candidates",
       {{"operator", op},
        {"samples", samples.size()},
        {"compile_median_ms", Quantile(compile, 0.5)},
        {"compile_p99_ms", Quantile(compile, 0.99)},
        {"replay_median_us", Quantile(replay, 0.5)},
        {"replay_p99_us", Quantile(replay, 0.99)},
        {"replay_us_per_primitive", Slope(Column(samples, &Sample::primitives), replay)},
        {"decision_bytes", Mean(Column(samples, &Sample::bytes))}}}};
}

int Main(int argc, char** argv) {
  int candidates = 200;
  std::string target_name = "native";
  std::string keep;
  std::vector<std::string> operators(std::begin(kOperators), std::end(kOperators));
  Command app("Times replay and compilation of random candidates.", "candidate_benchmark");
  app.Add("--candidates", candidates, "Candidates of each operator", {Range(1, 100000)});
  app.Add("--target", target_name, "Name of the target", {ShowDefault()});
  app.Add("--operator", operators, "Operator with its shape, as one word", {OneWordPerUse()});
  app.Add("--keep", keep, "Existing folder that keeps the artifacts", {ExistingFolder()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  const absl::StatusOr<target::Target> target = target::TargetByName(target_name);
  if (!target.ok()) {
    std::fprintf(stderr, "candidate_benchmark: %s\n",
                 std::string(target.status().message()).c_str());
    return kUsageExitCode;
  }
  const TemporaryFolder folder;
  int code = 0;
  for (const std::string& op : operators) {
    const absl::StatusOr<nlohmann::ordered_json> line =
        Measure(op, *target, candidates, keep.empty() ? folder.path() : keep);
    if (!line.ok()) {
      std::fprintf(stderr, "candidate_benchmark: %s\n",
                   std::string(line.status().message()).c_str());
      code = 1;
      break;
    }
    std::printf("%s\n", line->dump().c_str());
    std::fflush(stdout);
  }
  return code;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }

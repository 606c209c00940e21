// Measures how well the confirmation tells kernels apart. A pair is two copies of one kernel (A/A),
// or two kernels of which one does 3 % more work. Each pair is judged as a job judges its
// finalists, with the real runner in new processes. See --help.
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "server/confirm/confirmation.h"
#include "tests/temporary_folder.h"
#include "worker/agent/runner_client.h"

namespace hone {
namespace {

constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

// The verdicts on one kind of pairs.
struct Tally {
  int pairs = 0;
  int right = 0;
  int rounds = 0;
  std::vector<double> ratios;  // per pair, the median over the rounds of second / first
};

class Bench {
 public:
  // `rounds` receives a line for each round; may be null.
  Bench(std::string folder, FILE* rounds)
      : folder_(std::move(folder)),
        rounds_(rounds),
        runner_({.command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"), "--lock",
                             folder_ + "/lock", "--write", folder_}}) {}

  // Returns the path of a kernel's artifact. Copies differ only in their trace.
  absl::StatusOr<std::string> Artifact(const std::string& kernel, const std::string& copy) {
    record::Artifact artifact{.workload = std::string(kMatmul), .trace = copy};
    HONE_ASSIGN_OR_RETURN(artifact.shared_object,
                          ReadFile(absl::StrCat(KERNEL_DIR, "/", kernel, ".so")));
    const std::string bytes = record::EncodeArtifact(artifact);
    const std::string path = absl::StrCat(folder_, "/", Sha256Of(bytes));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    return path;
  }

  // Decides between two artifacts. If `slower`, `second` is slower; otherwise both are equally
  // fast.
  absl::Status Judge(const std::string& first, const std::string& second, bool slower,
                     uint64_t seed, Tally& tally) {
    job::Confirmation confirmation(2, /*incumbent=*/-1, seed);
    // Swaps half of the pairs, so that the listed order has no effect.
    const bool swapped = Rng(seed)() % 2 == 1;
    const std::string paths[2] = {swapped ? second : first, swapped ? first : second};
    std::vector<record::MeasureResult> results[2];
    for (;;) {
      const std::vector<int> order = confirmation.NextRound();
      if (order.empty()) break;
      for (const int index : order) {
        HONE_ASSIGN_OR_RETURN(const record::MeasureResult result, Run(paths[index]));
        results[index].push_back(result);
        confirmation.Report(index, result);
      }
    }
    std::vector<double> ratios;
    const size_t rounds = std::min(results[0].size(), results[1].size());
    for (size_t r = 0; r < rounds; ++r) {
      if (rounds_ != nullptr) {
        const record::MeasureResult& a = results[swapped ? 1 : 0][r];
        const record::MeasureResult& b = results[swapped ? 0 : 1][r];
        std::fprintf(rounds_, "%llu,%s,%zu,%.0f,%.5f,%.4f,%d,%.0f,%.5f,%.4f,%d\n",
                     static_cast<unsigned long long>(seed), slower ? "apart" : "same", r,
                     a.latency_ns, a.reference_drift, a.dispersion, a.machine.remeasured,
                     b.latency_ns, b.reference_drift, b.dispersion, b.machine.remeasured);
      }
      const double ratio =
          record::SteadyLatencyNs(results[1][r]) / record::SteadyLatencyNs(results[0][r]);
      ratios.push_back(swapped ? 1 / ratio : ratio);
    }
    std::sort(ratios.begin(), ratios.end());
    const size_t half = ratios.size() / 2;
    const double median =
        ratios.size() % 2 == 1 ? ratios[half] : std::sqrt(ratios[half - 1] * ratios[half]);
    const int winner = confirmation.Ranking().front() == 0 ? (swapped ? 1 : 0) : (swapped ? 0 : 1);
    ++tally.pairs;
    tally.right += slower ? (winner == 0 ? 1 : 0) : (std::abs(std::log(median)) <= 0.01 ? 1 : 0);
    tally.rounds += confirmation.rounds();
    tally.ratios.push_back(median);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<record::MeasureResult> Run(const std::string& path) {
    record::RunRequest request;
    request.workload = std::string(kMatmul);
    request.workload_digest = ir::ParseWorkload(kMatmul)->StructuralDigest().ToHex();
    request.artifact_path = path;
    request.reference_data = folder_ + "/reference";
    request.policy.name = "confirm";
    request.seed = DigestOf(absl::StrCat(path, ++runs_)).low;  // other page offsets each time
    request.time_limit_ms = 20000;
    record::MeasureResult measured;
    runner_.Run(
        {request}, [](size_t) { return true; }, [](size_t) {},
        [&](size_t, record::MeasureResult result) { measured = std::move(result); });
    if (measured.outcome == record::Outcome::kOk) return measured;
    return absl::InternalError(
        absl::StrCat(record::OutcomeName(measured.outcome), ": ", measured.detail));
  }

  const std::string folder_;
  FILE* const rounds_;
  agent::RunnerClient runner_;
  int runs_ = 0;
};

void Print(const char* what, const Tally& tally) {
  if (tally.pairs == 0) return;
  std::vector<double> sorted = tally.ratios;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) { return sorted[static_cast<size_t>(q * (sorted.size() - 1))]; };
  std::printf("| %s | %d | %d (%.0f %%) | %.4f | %.4f … %.4f | %.1f |\n", what, tally.pairs,
              tally.right, 100.0 * tally.right / tally.pairs, at(0.5), at(0.025), at(0.975),
              static_cast<double>(tally.rounds) / tally.pairs);
}

absl::Status Measure(int pairs, double seconds, uint64_t seed, FILE* rounds) {
  const TemporaryFolder folder;
  Bench bench(folder.path(), rounds);
  Tally same, apart;
  HONE_ASSIGN_OR_RETURN(const std::string first, bench.Artifact("repeats_100", "first"));
  HONE_ASSIGN_OR_RETURN(const std::string copy, bench.Artifact("repeats_100", "copy"));
  HONE_ASSIGN_OR_RETURN(const std::string slower, bench.Artifact("repeats_103", "slower"));
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  for (int pair = 0; pair < pairs && absl::Now() < end; ++pair) {
    HONE_RETURN_IF_ERROR(bench.Judge(first, copy, false, seed + 2 * pair, same));
    HONE_RETURN_IF_ERROR(bench.Judge(first, slower, true, seed + 2 * pair + 1, apart));
  }
  std::printf("| pairs | decided | right | median ratio | 95 %% of the ratios | rounds |\n");
  std::printf("|---|---|---|---|---|---|\n");
  Print("two copies: within 1 %", same);
  Print("3 % apart: the faster one wins", apart);
  return absl::OkStatus();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  using hone::ShowDefault;
  hone::Command app(
      "Judges pairs of kernels as a job confirms its finalists: copies of one, and pairs 3 % "
      "apart. "
      "Prints a table.\nExample: HONE_BIN_DIR=build/release/bin "
      "build/release/bench/timing_benchmark "
      "--pairs 100");
  int pairs = 100;
  double seconds = 1e9;
  uint64_t seed = 1;
  app.Add("--pairs", pairs, "Pairs of each kind", {ShowDefault()});
  app.Add("--seconds", seconds, "Begin no pair after so long");
  app.Add("--seed", seed, "Of orders and page offsets", {ShowDefault()});
  std::string rounds;
  app.Add("--rounds", rounds,
          "Append a line of each round to this CSV: pair, kind, round, then latency, drift, "
          "dispersion and disturbed blocks of both");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  signal(SIGPIPE, SIG_IGN);
  if (getenv("HONE_BIN_DIR") == nullptr) {
    std::fprintf(stderr, "HONE_BIN_DIR must name the folder of hone-runner\n");
    return 2;
  }
  FILE* const file = rounds.empty() ? nullptr : std::fopen(rounds.c_str(), "a");
  if (!rounds.empty() && file == nullptr) {
    std::fprintf(stderr, "%s cannot be written\n", rounds.c_str());
    return 2;
  }
  if (absl::Status measured = hone::Measure(pairs, seconds, seed, file); !measured.ok()) {
    std::fprintf(stderr, "%s\n", std::string(measured.message()).c_str());
    return 1;
  }
  return 0;
}

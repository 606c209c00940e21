// Compares kernels that `hone export` wrote with oneDNN and OpenBLAS: in one process, interleaved,
// warm, on all cores. Times and shares are by formula without padded taps; what may be packed ahead
// of time (constant weights) is, on both sides.

#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/format.h"
#include "client/cli/table.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "tests/bench/compare/contender.h"
#include "tests/bench/compare/interleaved.h"
#include "tests/bench/compare/operator_match.h"
#include "worker/runner/peak.h"

namespace hone::compare {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string name;
  double latency_ns = 0;
  double gflops = 0;
  double spread = 0;
  double hone_is_faster = 0;  // how many times; 0 unknown
};

struct Comparison {
  std::string title;
  double flops = 0;
  std::vector<Row> rows;
};

// The largest difference of the outputs, over the root of the summands that an element has:
// rounding grows with that.
double Difference(const std::vector<float>& a, const std::vector<float>& b, double summands) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
  }
  return largest / std::sqrt(std::max(1.0, summands));
}

// Runs every contender once on poisoned outputs. Internal: one of them computes something else than
// the first.
absl::Status CheckAgreement(const std::vector<std::unique_ptr<Contender>>& contenders,
                            const Buffers& buffers, double flops) {
  constexpr double kBound = 1e-5;  // for inputs in [-1, 1)
  const int output = buffers.inputs();
  std::vector<float> expected;
  for (const auto& contender : contenders) {
    std::fill_n(buffers.at(output), buffers.elements(output), NAN);
    HONE_RETURN_IF_ERROR(contender->Run());
    std::vector<float> result(buffers.at(output), buffers.at(output) + buffers.elements(output));
    if (expected.empty()) {
      expected = std::move(result);
      continue;
    }
    const double difference =
        Difference(expected, result, flops / 2 / static_cast<double>(buffers.elements(output)));
    if (!(difference <= kBound)) {
      return absl::InternalError(absl::StrCat(contenders[0]->name(), " and ", contender->name(),
                                              " disagree by ", difference));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Comparison> Compare(const std::string& folder, const std::optional<Json>& tuned,
                                   const TimingOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Exported exported, FindExported(folder));
  HONE_ASSIGN_OR_RETURN(const OperatorMatch match, MatchOperator(exported.workload));
  HONE_ASSIGN_OR_RETURN(const Buffers buffers, Buffers::Make(exported.workload, 42));
  std::vector<std::unique_ptr<Contender>> contenders;
  HONE_ASSIGN_OR_RETURN(contenders.emplace_back(), MakeHoneKernel(exported, buffers));
  for (const auto make : {MakeOneDnn, MakeOpenBlas}) {
    absl::StatusOr<std::unique_ptr<Contender>> library = make(match, buffers);
    if (absl::IsUnimplemented(library.status())) continue;
    HONE_RETURN_IF_ERROR(library.status());
    contenders.push_back(*std::move(library));
  }
  Comparison comparison;
  comparison.title = match.ToText();
  comparison.flops = exported.workload.FlopCount();
  HONE_RETURN_IF_ERROR(CheckAgreement(contenders, buffers, comparison.flops));
  HONE_ASSIGN_OR_RETURN(const std::vector<Timing> timings, TimeInterleaved(contenders, options));
  if (tuned.has_value() && (*tuned)["default"].is_object()) {
    const double latency = (*tuned)["default"]["latency_ns"];
    comparison.rows.push_back({"default (untiled)", latency, comparison.flops / latency, 0,
                               latency / timings[0].latency_ns});
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    comparison.rows.push_back({contenders[i]->name(), timings[i].latency_ns,
                               comparison.flops / timings[i].latency_ns, timings[i].spread,
                               i == 0 ? 1 : MedianRatio(timings[0], timings[i])});
  }
  return comparison;
}

void PrintTable(const std::vector<Comparison>& comparisons, double peak) {
  for (const Comparison& comparison : comparisons) {
    std::printf("%s\n", comparison.title.c_str());
    cli::Table table({{"", cli::Table::Align::kLeft},
                      {"latency"},
                      {"GFLOP/s"},
                      {"share of peak"},
                      {"Hone is faster by"}});
    for (const Row& row : comparison.rows) {
      table.AddRow({row.name, cli::FormatLatency(row.latency_ns), cli::FormatGflops(row.gflops),
                    cli::FormatShare(row.gflops, peak),
                    row.name == "Hone" ? "" : absl::StrFormat("%.2fx", row.hone_is_faster)});
    }
    std::printf("%s\n", table.ToText().c_str());
  }
  std::printf("FMA peak of this machine, measured: %.1f GFLOP/s\n", peak);
}

Json ToJson(const std::vector<Comparison>& comparisons, double peak) {
  Json list = Json::array();
  for (const Comparison& comparison : comparisons) {
    Json rows = Json::array();
    for (const Row& row : comparison.rows) {
      rows.push_back({{"name", row.name},
                      {"latency_ns", row.latency_ns},
                      {"gflops", row.gflops},
                      {"share_of_peak", row.gflops / peak},
                      {"spread", row.spread},
                      {"hone_speedup", row.hone_is_faster}});
    }
    list.push_back(
        {{"operator", comparison.title}, {"flops", comparison.flops}, {"rows", std::move(rows)}});
  }
  return {{"peak_gflops", peak},
          {"target", target::DetectHost().Key()},
          {"comparisons", std::move(list)}};
}

int Main(int argc, char** argv) {
  std::vector<std::string> folders;
  std::vector<std::string> tuned_files;
  bool json = false;
  TimingOptions options;
  CLI::App app("Compares exported kernels with oneDNN and OpenBLAS, interleaved in one process.",
               "compare");
  app.add_option("folder", folders, "Folders that hone export wrote")->required();
  app.add_option("--tuned", tuned_files,
                 "What hone tune --json printed for each folder, for the row of the default");
  app.add_option("--rounds", options.rounds, "Rounds of the interleaved timing")
      ->check(CLI::Range(3, 10000));
  app.add_flag("--json", json, "Print one JSON object on one line");
  CLI11_PARSE(app, argc, argv);
  if (!tuned_files.empty() && tuned_files.size() != folders.size()) {
    std::fprintf(stderr, "compare: as many --tuned as folders are needed\n");
    return 2;
  }
  // Nothing of Hone's on this machine disturbs the timing, nor the other way round.
  const absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kExclusive, absl::Now() + absl::Minutes(2));
  if (!lock.ok()) {
    std::fprintf(stderr, "compare: cannot get the timing lock: %s\n",
                 std::string(lock.status().message()).c_str());
    return 1;
  }
  const double peak = runner::MeasurePeak(target::DetectHost().cores).gflops_all_cores();
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < folders.size(); ++i) {
    std::optional<Json> tuned;
    if (!tuned_files.empty()) {
      const absl::StatusOr<std::string> text = ReadFile(tuned_files[i]);
      tuned = Json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
      if (!tuned->is_object()) {
        std::fprintf(stderr, "compare: %s is not what hone tune --json prints\n",
                     tuned_files[i].c_str());
        return 2;
      }
    }
    absl::StatusOr<Comparison> comparison = Compare(folders[i], tuned, options);
    if (!comparison.ok()) {
      std::fprintf(stderr, "compare: %s: %s\n", folders[i].c_str(),
                   std::string(comparison.status().message()).c_str());
      return 1;
    }
    comparisons.push_back(*std::move(comparison));
  }
  if (json) {
    std::printf("%s\n", ToJson(comparisons, peak).dump().c_str());
  } else {
    PrintTable(comparisons, peak);
  }
  return 0;
}

}  // namespace
}  // namespace hone::compare

int main(int argc, char** argv) {
  hone::compare::ChooseOpenBlasKernel(argv);
  return hone::compare::Main(argc, argv);
}

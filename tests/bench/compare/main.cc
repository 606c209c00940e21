// Compares kernels that `hone export` wrote with oneDNN and OpenBLAS: in one process, interleaved,
// warm, on all cores. Times and shares are by formula without padded taps; what may be packed ahead
// of time (constant weights) is, on both sides.

#include <omp.h>

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

namespace hone::compare {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string name;
  double latency_ns = 0;
  double gflops = 0;
  double share_of_peak = 0;  // of the peak timed in the same rounds; 0 unknown
  double share_of_copy = 0;  // copying as many bytes, by this
  double spread = 0;
  double hone_is_faster = 0;  // the first of Hone, how many times; 0 in its own row
};

struct Comparison {
  std::string title;
  double flops = 0;
  double peak_gflops = 0;  // median of the rounds
  std::vector<Row> rows;
};

std::vector<double> OutputsOf(const Buffers& buffers) {
  std::vector<double> outputs;
  for (int i = buffers.inputs(); i < buffers.size(); ++i) {
    for (int64_t e = 0; e < buffers.elements(i); ++e) outputs.push_back(buffers.value(i, e));
  }
  return outputs;
}

// The largest difference of the outputs, over the root of the summands that an element has, with
// which rounding grows, or over the largest output where that is more.
double Difference(const std::vector<double>& a, const std::vector<double>& b, double summands) {
  double largest = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
    scale = std::max(scale, std::abs(a[i]));
  }
  return largest / std::max(std::sqrt(std::max(1.0, summands)), scale);
}

// Runs every contender once on poisoned outputs. Internal: one of them computes something else than
// the first.
absl::Status CheckAgreement(const std::vector<std::unique_ptr<Contender>>& contenders,
                            const Buffers& buffers, double flops, double bound) {
  std::vector<double> expected;
  for (const auto& contender : contenders) {
    buffers.PoisonOutputs();
    HONE_RETURN_IF_ERROR(contender->Run());
    std::vector<double> result = OutputsOf(buffers);
    if (expected.empty()) {
      expected = std::move(result);
      continue;
    }
    const double difference =
        Difference(expected, result, flops / 2 / static_cast<double>(result.size()));
    if (!(difference <= bound)) {
      return absl::InternalError(absl::StrCat(contenders[0]->name(), " and ", contender->name(),
                                              " disagree by ", difference));
    }
  }
  return absl::OkStatus();
}

struct Options {
  TimingOptions timing;
  double bound = 1e-5;  // of the differences between contenders
};

// `sources`: of one workload. `tuned`: what `hone tune --json` printed for the first.
absl::StatusOr<Comparison> Compare(const std::vector<HoneSource>& sources,
                                   const std::optional<Json>& tuned, const Options& options) {
  const ir::Workload& workload = sources[0].workload;
  HONE_ASSIGN_OR_RETURN(const OperatorMatch match, MatchOperator(workload, sources[0].op));
  HONE_ASSIGN_OR_RETURN(const Buffers buffers, Buffers::Make(workload, 42));
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const HoneSource& source : sources) {
    HONE_ASSIGN_OR_RETURN(contenders.emplace_back(), MakeHoneKernel(source, buffers));
  }
  for (const auto make : {MakeOneDnn, MakeOpenBlas}) {
    absl::StatusOr<std::unique_ptr<Contender>> library = make(match, buffers);
    if (absl::IsUnimplemented(library.status())) continue;
    HONE_RETURN_IF_ERROR(library.status());
    contenders.push_back(*std::move(library));
  }
  Comparison comparison;
  comparison.title = match.ToText();
  comparison.flops = workload.FlopCount();
  HONE_RETURN_IF_ERROR(CheckAgreement(contenders, buffers, comparison.flops, options.bound));
  auto fma = std::make_unique<FmaPeak>();
  const FmaPeak& peak = *fma;
  contenders.push_back(std::move(fma));
  contenders.push_back(std::make_unique<Copy>(buffers.bytes()));
  HONE_ASSIGN_OR_RETURN(const std::vector<Timing> timings,
                        TimeInterleaved(contenders, options.timing));
  const size_t rivals = contenders.size() - 2;
  const Timing& peak_timing = timings[rivals];
  const Timing& copy_timing = timings[rivals + 1];
  comparison.peak_gflops = peak.flops() / peak_timing.latency_ns;
  if (tuned.has_value() && (*tuned)["default"].is_object()) {
    const double latency = (*tuned)["default"]["latency_ns"];
    comparison.rows.push_back({.name = "default (untiled)",
                               .latency_ns = latency,
                               .gflops = comparison.flops / latency,
                               .share_of_peak = comparison.flops / latency / comparison.peak_gflops,
                               .hone_is_faster = latency / timings[0].latency_ns});
  }
  for (size_t i = 0; i < rivals; ++i) {
    comparison.rows.push_back(
        {.name = contenders[i]->name(),
         .latency_ns = timings[i].latency_ns,
         .gflops = comparison.flops / timings[i].latency_ns,
         .share_of_peak = MedianRateRatio(timings[i], comparison.flops, peak_timing, peak.flops()),
         .share_of_copy = MedianRatio(timings[i], copy_timing),
         .spread = timings[i].spread,
         .hone_is_faster = i == 0 ? 0 : MedianRatio(timings[0], timings[i])});
  }
  return comparison;
}

void PrintTable(const std::vector<Comparison>& comparisons) {
  for (const Comparison& comparison : comparisons) {
    std::printf("%s\n", comparison.title.c_str());
    cli::Table table({{"", cli::Table::Align::kLeft},
                      {"latency"},
                      {"GFLOP/s"},
                      {"share of peak"},
                      {"of copy rate"},
                      {"Hone is faster by"}});
    for (const Row& row : comparison.rows) {
      table.AddRow({row.name, cli::FormatLatency(row.latency_ns), cli::FormatGflops(row.gflops),
                    row.share_of_peak == 0 ? "" : cli::FormatShare(row.share_of_peak, 1),
                    row.share_of_copy == 0 ? "" : cli::FormatShare(row.share_of_copy, 1),
                    row.hone_is_faster == 0 ? "" : absl::StrFormat("%.2fx", row.hone_is_faster)});
    }
    table.AddRow({"FMA peak, measured", "", cli::FormatGflops(comparison.peak_gflops), "", "", ""});
    std::printf("%s\n", table.ToText().c_str());
  }
}

Json ToJson(const std::vector<Comparison>& comparisons) {
  Json list = Json::array();
  for (const Comparison& comparison : comparisons) {
    Json rows = Json::array();
    for (const Row& row : comparison.rows) {
      rows.push_back({{"name", row.name},
                      {"latency_ns", row.latency_ns},
                      {"gflops", row.gflops},
                      {"share_of_peak", row.share_of_peak},
                      {"share_of_copy", row.share_of_copy},
                      {"spread", row.spread},
                      {"hone_speedup", row.hone_is_faster}});
    }
    list.push_back({{"operator", comparison.title},
                    {"flops", comparison.flops},
                    {"peak_gflops", comparison.peak_gflops},
                    {"rows", std::move(rows)}});
  }
  return {{"target", target::DetectHost().Key()}, {"comparisons", std::move(list)}};
}

// A folder that `hone export` wrote, or a trace file.
absl::StatusOr<HoneSource> Load(const std::string& path, int threads) {
  if (path.ends_with(".trace")) return BuildTrace(path, threads);
  return FindExported(path);
}

struct Arguments {
  std::vector<std::string> paths;
  std::vector<std::string> tuned;
  int threads = 0;
  bool json = false;
  Options options;
};

// The comparisons in the order of the paths; neighbours of one workload are compared together.
absl::StatusOr<std::vector<Comparison>> CompareAll(const Arguments& arguments) {
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < arguments.paths.size();) {
    std::optional<Json> tuned;
    if (!arguments.tuned.empty()) {
      HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.tuned[i]));
      tuned = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (!tuned->is_object()) {
        return absl::InvalidArgumentError(
            absl::StrCat(arguments.tuned[i], " is not what hone tune --json prints"));
      }
    }
    std::vector<HoneSource> sources;
    for (; i < arguments.paths.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(HoneSource source, Load(arguments.paths[i], arguments.threads));
      if (!sources.empty() &&
          source.workload.StructuralDigest() != sources[0].workload.StructuralDigest())
        break;
      sources.push_back(std::move(source));
    }
    HONE_ASSIGN_OR_RETURN(comparisons.emplace_back(), Compare(sources, tuned, arguments.options));
  }
  return comparisons;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.threads = target::DetectHost().cores;
  CLI::App app(
      "Compares kernels of Hone with oneDNN and OpenBLAS, interleaved in one process.\n\n"
      "  compare DIR               what hone export wrote into DIR\n"
      "  compare tests/bench/traces/*.trace    hand-written schedules, built here\n"
      "  compare a.trace b.trace --threads 1   two schedules of a workload, on one core",
      "compare");
  app.add_option("path", arguments.paths, "Folders that hone export wrote, or trace files")
      ->required();
  app.add_option("--tuned", arguments.tuned,
                 "What hone tune --json printed for each path, for the row of the default");
  app.add_option("--threads", arguments.threads, "Threads; all cores by default")
      ->check(CLI::Range(1, arguments.threads));
  app.add_option("--rounds", arguments.options.timing.rounds, "Rounds of the interleaved timing")
      ->check(CLI::Range(3, 10000));
  app.add_option("--bound", arguments.options.bound,
                 "Largest difference of outputs for inputs in [-1, 1), by the root of the summands")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", arguments.json, "Print one JSON object on one line");
  CLI11_PARSE(app, argc, argv);
  if (!arguments.tuned.empty() && arguments.tuned.size() != arguments.paths.size()) {
    std::fprintf(stderr, "compare: as many --tuned as paths are needed\n");
    return 2;
  }
  omp_set_num_threads(arguments.threads);
  // Nothing of Hone's on this machine disturbs the timing, nor the other way round.
  const absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kExclusive, absl::Now() + absl::Minutes(2));
  if (!lock.ok()) {
    std::fprintf(stderr, "compare: cannot get the timing lock: %s\n",
                 std::string(lock.status().message()).c_str());
    return 1;
  }
  const absl::StatusOr<std::vector<Comparison>> comparisons = CompareAll(arguments);
  if (!comparisons.ok()) {
    std::fprintf(stderr, "compare: %s\n", std::string(comparisons.status().message()).c_str());
    return 1;
  }
  if (arguments.json) {
    std::printf("%s\n", ToJson(*comparisons).dump().c_str());
  } else {
    PrintTable(*comparisons);
  }
  return 0;
}

}  // namespace
}  // namespace hone::compare

int main(int argc, char** argv) {
  hone::compare::ChooseOpenBlasKernel(argv);
  return hone::compare::Main(argc, argv);
}

#include "tests/bench/compare/comparison.h"

#include <omp.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "tests/bench/compare/operator_match.h"

namespace hone::compare {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> OutputsOf(const Buffers& buffers) {
  std::vector<double> outputs;
  for (int i = buffers.inputs(); i < buffers.size(); ++i) {
    for (int64_t e = 0; e < buffers.elements(i); ++e) outputs.push_back(buffers.value(i, e));
  }
  return outputs;
}

// Returns the largest difference of the outputs, relative to the square root of the number of
// summands per element, with which rounding grows, or to the largest output if that is more.
double Difference(const std::vector<double>& a, const std::vector<double>& b, double summands) {
  double largest = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
    scale = std::max(scale, std::abs(a[i]));
  }
  return largest / std::max(std::sqrt(std::max(1.0, summands)), scale);
}

// Runs every contender once on poisoned outputs. Internal: a result differs from that of the first
// contender.
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

}  // namespace

absl::StatusOr<Comparison> Compare(const std::vector<HoneSource>& sources, int threads,
                                   const CompareOptions& options) {
  const ir::Workload& workload = sources[0].workload;
  HONE_ASSIGN_OR_RETURN(const OperatorMatch match, MatchOperator(workload, sources[0].op));
  HONE_ASSIGN_OR_RETURN(const Buffers buffers, Buffers::Make(workload, 42));
  omp_set_num_threads(threads);
  std::vector<std::unique_ptr<Contender>> contenders;
  double bound = options.bound;
  for (const HoneSource& source : sources) {
    HONE_ASSIGN_OR_RETURN(contenders.emplace_back(), MakeHoneKernel(source, buffers));
    bound = std::max(bound, options.bound + source.tolerance);
  }
  for (const auto make : {MakeOneDnn, MakeOpenBlas}) {
    absl::StatusOr<std::unique_ptr<Contender>> library = make(match, buffers);
    if (absl::IsUnimplemented(library.status())) continue;
    HONE_RETURN_IF_ERROR(library.status());
    contenders.push_back(*std::move(library));
  }
  Comparison comparison{.title = match.ToText(), .threads = threads, .flops = FlopCount(workload)};
  HONE_RETURN_IF_ERROR(CheckAgreement(contenders, buffers, comparison.flops, bound));
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
  for (size_t i = 0; i < rivals; ++i) {
    Row row{
        .name = contenders[i]->name(),
        .latency_ns = timings[i].latency_ns,
        .gflops = comparison.flops / timings[i].latency_ns,
        .share_of_peak = MedianRateRatio(timings[i], comparison.flops, peak_timing, peak.flops()),
        .share_of_copy = MedianRatio(timings[i], copy_timing),
        .spread = timings[i].spread,
        .hone_is_faster = i == 0 ? 0 : MedianRatio(timings[0], timings[i])};
    if (i < sources.size()) {
      row.algorithm = sources[i].algorithm;
      for (size_t l = sources.size(); l < rivals; ++l)
        row.over[contenders[l]->name()] = MedianRatio(timings[i], timings[l]);
    }
    comparison.rows.push_back(std::move(row));
  }
  return comparison;
}

void AddDefault(const Json& tuned, Comparison& comparison) {
  if (!tuned["default"].is_object()) return;
  const double latency = tuned["default"]["latency_ns"];
  comparison.rows.insert(comparison.rows.begin(),
                         {.name = "default (untiled)",
                          .latency_ns = latency,
                          .gflops = comparison.flops / latency,
                          .share_of_peak = comparison.flops / latency / comparison.peak_gflops,
                          .hone_is_faster = latency / comparison.rows[0].latency_ns});
}

std::string ToTable(const Comparison& comparison) {
  cli::Table table({cli::Left(""), cli::Right("latency"), cli::Right("GFLOP/s"),
                    cli::Right("share of peak"), cli::Right("of copy rate"),
                    cli::Right("Hone is faster by")});
  for (const Row& row : comparison.rows) {
    table.AddRow({row.name, cli::FormatLatency(row.latency_ns), cli::FormatGflops(row.gflops),
                  row.share_of_peak == 0 ? "" : cli::FormatShare(row.share_of_peak, 1),
                  row.share_of_copy == 0 ? "" : cli::FormatShare(row.share_of_copy, 1),
                  row.hone_is_faster == 0 ? "" : absl::StrFormat("%.2fx", row.hone_is_faster)});
  }
  table.AddRow({"FMA peak, measured", "", cli::FormatGflops(comparison.peak_gflops), "", "", ""});
  return absl::StrCat(comparison.title, "\n", table.ToText());
}

Json ToJson(const Comparison& comparison) {
  Json rows = Json::array();
  for (const Row& row : comparison.rows) {
    rows.push_back({{"name", row.name},
                    {"algorithm", row.algorithm},
                    {"latency_ns", row.latency_ns},
                    {"gflops", row.gflops},
                    {"share_of_peak", row.share_of_peak},
                    {"share_of_copy", row.share_of_copy},
                    {"spread", row.spread},
                    {"hone_speedup", row.hone_is_faster},
                    {"over", row.over}});
  }
  return {{"operator", comparison.title},
          {"threads", comparison.threads},
          {"flops", comparison.flops},
          {"peak_gflops", comparison.peak_gflops},
          {"rows", std::move(rows)}};
}

}  // namespace hone::compare

#include "client/cli/records/explanation.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/tune/apply_trace.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

Json MeasuredValuesJson(const google::protobuf::RepeatedPtrField<v1::MeasuredValue>& values) {
  Json rows = Json::array();
  for (const v1::MeasuredValue& value : values) {
    const bool known = value.missing().empty();
    rows.push_back({{"name", value.name()},
                    {"meaning", value.meaning()},
                    {"value", known ? Json(value.value()) : Json(nullptr)},
                    {"estimate", value.has_estimate() ? Json(value.estimate()) : Json(nullptr)},
                    {"missing", known ? Json(nullptr) : Json(value.missing())}});
  }
  return rows;
}

// "812", "12.5 k", "3.071 G"
std::string CountText(double value) {
  constexpr struct {
    double scale;
    const char* unit;
  } kScales[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}};
  for (const auto& [scale, unit] : kScales) {
    if (value >= scale)
      return absl::StrFormat("%.4g%s", value / (scale == 1e4 ? 1e3 : scale), unit);
  }
  return absl::StrFormat("%.4g", value);
}

}  // namespace

ir::Roofline RooflineOf(const v1::Explanation& explanation) {
  const v1::Roofline& roofline = explanation.roofline();
  return {.flops = roofline.flops(),
          .bytes = roofline.bytes(),
          .peak_gflops = explanation.best().peak_gflops(),
          .read_gbps = explanation.best().read_gbps(),
          .gflops = roofline.gflops(),
          .memory_bound = roofline.bound() == "memory",
          .cache_bound = roofline.bound() == "cache"};
}

std::string RooflineText(const ir::Roofline& roofline) {
  if (roofline.cache_bound) {
    return absl::StrFormat(
        "roofline: unknown, because the best is faster than the memory (%.1f GB/s measured): its "
        "inputs and outputs, %s, stay in caches, whose bandwidth is not measured",
        roofline.read_gbps, FormatBytes(static_cast<int64_t>(roofline.bytes)));
  }
  if (!(roofline.gflops > 0)) {
    return "roofline: unknown, because the peak of the device is unknown for this operator";
  }
  const std::string limit =
      roofline.memory_bound
          ? absl::StrFormat("memory: %.1f GB/s measured, %.1f operations per byte",
                            roofline.read_gbps, roofline.flops / roofline.bytes)
          : absl::StrCat("the measured peak of fused multiply-adds",
                         roofline.read_gbps > 0 ? "" : " (the memory bandwidth is unknown)");
  return absl::StrCat("roofline: ", FormatGflops(roofline.gflops), " GFLOP/s, limited by ", limit);
}

Json RooflineJson(const ir::Roofline& roofline) {
  return {{"gflops", roofline.gflops},
          {"peak_gflops", roofline.peak_gflops},
          {"read_gbps", roofline.read_gbps},
          {"bytes", roofline.bytes},
          {"bound", ir::BoundOf(roofline)}};
}

std::string CyclesText(double cycles, double cycle_ns) {
  if (cycle_ns > 0) return FormatLatency(cycles * cycle_ns);
  if (cycles < 1e4) return absl::StrFormat("%.0f cycles", cycles);
  return cycles < 1e7 ? absl::StrFormat("%.1f kcycles", cycles / 1e3)
                      : absl::StrFormat("%.1f Mcycles", cycles / 1e6);
}

Json EstimateJson(const v1::Explanation& explanation) {
  Json terms = Json::array(), statements = Json::array();
  for (const v1::EstimateTerm& term : explanation.terms()) terms.push_back(FieldsJson(term));
  for (const v1::StatementEstimate& statement : explanation.statements()) {
    statements.push_back(FieldsJson(statement));
  }
  return {{"cycles", explanation.estimate_cycles()},
          {"cycle_ns", explanation.cycle_ns() > 0 ? Json(explanation.cycle_ns()) : Json(nullptr)},
          {"learned", explanation.learned()},
          {"terms", std::move(terms)},
          {"statements", std::move(statements)}};
}

Json CountersJson(const v1::Explanation& explanation) {
  const std::string& why = explanation.not_counted();
  return {{"ratios", MeasuredValuesJson(explanation.ratios())},
          {"counters", MeasuredValuesJson(explanation.counters())},
          {"not_counted", why.empty() ? Json(nullptr) : Json(why)}};
}

void PrintCounters(const v1::Explanation& explanation) {
  if (explanation.best().record().id() == 0) return;
  if (!explanation.not_counted().empty()) {
    PrintWrapped(absl::StrCat("\nmeasured: no counters, because ", explanation.not_counted()));
    return;
  }
  PrintWrapped("\nmeasured in extra runs after the timing, for one run:");
  absl::PrintF("\n");
  Table table({Left("measured"), Right("value"), Right("estimate"), Text("what it is")});
  std::map<std::string, std::vector<std::string>> missing;  // names by reason
  for (const auto* const values : {&explanation.ratios(), &explanation.counters()}) {
    for (const v1::MeasuredValue& value : *values) {
      if (value.missing().empty()) {
        table.AddRow({value.name(), CountText(value.value()),
                      value.has_estimate() ? CountText(value.estimate()) : "-", value.meaning()});
      } else {
        missing[value.missing()].push_back(value.name());
      }
    }
  }
  table.Print();
  for (const auto& [reason, names] : missing) {
    PrintWrapped(absl::StrCat("\nmissing: ", absl::StrJoin(names, ", "), ": ", reason));
  }
}

Json MeasuredJson(const v1::Best& best) {
  const int64_t record = best.record().id();
  Json json = {{"record", record > 0 ? Json(record) : Json(nullptr)},
               {"latency_ns", nullptr},
               {"gflops", nullptr},
               {"outcome", nullptr},
               {"proposer", best.record().proposer()}};
  if (record > 0) json["outcome"] = client::OutcomeName(best.record().result().outcome());
  if (best.latency_ns() > 0) {
    json["latency_ns"] = best.latency_ns();
    json["gflops"] = best.gflops();
  }
  return json;
}

std::string MeasuredText(const v1::Best& best) {
  if (best.record().id() == 0) return "not measured";
  const std::string result =
      best.latency_ns() > 0 ? FormatSpeed(best.latency_ns(), best.gflops(), !best.disturbed())
                            : std::string(client::OutcomeName(best.record().result().outcome()));
  const std::string& proposer = best.record().proposer();
  return absl::StrCat("record ", best.record().id(), ", ", result,
                      proposer.empty() ? "" : absl::StrCat(", proposed by ", proposer));
}

absl::StatusOr<ScheduleArgument> ReadScheduleArgument(const std::string& word) {
  if (!word.empty() && std::ranges::all_of(word, absl::ascii_isdigit)) {
    ScheduleArgument argument;
    if (absl::SimpleAtoi(word, &argument.record) && argument.record > 0) return argument;
    return absl::InvalidArgumentError(
        absl::StrCat(word, " is not the number of a record; hone records query lists the records"));
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(word));
  return ParseScheduleArgument(word, text);
}

absl::StatusOr<ScheduleArgument> ParseScheduleArgument(const std::string& path,
                                                       const std::string& text) {
  if (!IsTrace(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a trace: it has no line \"", schedule::kTraceHeader,
                     "\"; hone show OP --trace prints that of the best schedule"));
  }
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied, ApplyDecidedTrace(path, text));
  return ScheduleArgument{.path = path, .trace = applied.Text()};
}

absl::StatusOr<v1::Explanation> ExplainArgument(Session& session, const ScheduleArgument& argument,
                                                const std::string& target) {
  v1::ExplainScheduleRequest request;
  request.set_record(argument.record);
  if (argument.record == 0) {
    request.set_trace(argument.trace);
    request.set_target(target);
  }
  return session.connection().Explain(request);
}

}  // namespace hone::cli

#include "tests/bench/table/results.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace hone::bench {
namespace {

using Json = nlohmann::json;

void ReadComparison(const Json& comparison, Results& results) {
  for (const Json& row : comparison.at("rows")) {
    const std::string name = row.at("name");
    absl::string_view trace = name;
    if (!absl::ConsumePrefix(&trace, "Hone ")) continue;
    results.kernels.push_back({.op = comparison.at("operator"),
                               .trace = std::string(trace),
                               .algorithm = row.at("algorithm"),
                               .threads = comparison.at("threads"),
                               .latency_ns = row.at("latency_ns"),
                               .share_of_peak = row.at("share_of_peak"),
                               .share_of_copy = row.at("share_of_copy"),
                               .over = row.at("over").get<std::map<std::string, double>>()});
  }
}

void ReadCandidates(const Json& line, Results& results) {
  results.candidates.push_back({.op = line.at("operator"),
                                .samples = line.at("samples"),
                                .compile_median_ms = line.at("compile_median_ms"),
                                .compile_p99_ms = line.at("compile_p99_ms"),
                                .replay_median_us = line.at("replay_median_us"),
                                .replay_p99_us = line.at("replay_p99_us"),
                                .replay_us_per_primitive = line.at("replay_us_per_primitive"),
                                .decision_bytes = line.at("decision_bytes")});
}

void ReadLine(const Json& line, Results& results) {
  if (line.contains("comparison")) {
    ReadComparison(line["comparison"], results);
  } else if (line.contains("candidates")) {
    ReadCandidates(line["candidates"], results);
  } else {
    const Json& machine = line.at("machine");
    results.machine = {.cpu = machine.at("cpu"),
                       .target = machine.at("target"),
                       .date = machine.at("date"),
                       .cores = machine.at("cores")};
  }
}

}  // namespace

absl::StatusOr<Results> ParseResults(absl::string_view lines) {
  Results results;
  int number = 0;
  for (const absl::string_view text : absl::StrSplit(lines, '\n')) {
    ++number;
    if (text.empty()) continue;
    try {
      ReadLine(Json::parse(text.begin(), text.end()), results);
    } catch (const Json::exception& error) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", error.what()));
    }
  }
  return results;
}

}  // namespace hone::bench

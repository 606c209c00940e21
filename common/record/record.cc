#include "common/record/record.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::record {
namespace {

constexpr std::array<std::pair<Outcome, absl::string_view>, 9> kNames = {{
    {Outcome::kOk, "ok"},
    {Outcome::kInvalid, "invalid"},
    {Outcome::kCompileError, "compile_error"},
    {Outcome::kCompileTimeout, "compile_timeout"},
    {Outcome::kRunTimeout, "run_timeout"},
    {Outcome::kCrash, "crash"},
    {Outcome::kWrongOutput, "wrong_output"},
    {Outcome::kOutOfMemory, "out_of_memory"},
    {Outcome::kDeviceLost, "device_lost"},
}};

}  // namespace

absl::string_view OutcomeName(Outcome outcome) {
  for (const auto& [value, name] : kNames) {
    if (value == outcome) return name;
  }
  return "unknown";
}

absl::StatusOr<Outcome> OutcomeFromName(absl::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat("no outcome is called '", name, "'"));
}

const std::vector<Outcome>& AllOutcomes() {
  static const auto* const all = [] {
    auto* outcomes = new std::vector<Outcome>;
    for (const auto& [value, name] : kNames) outcomes->push_back(value);
    return outcomes;
  }();
  return *all;
}

double SteadyLatencyNs(const MeasureResult& result) {
  // A drift outside these bounds is due to a disturbance of the reference kernel alone.
  if (!(result.reference_drift > 0)) return result.latency_ns;
  return result.latency_ns / std::clamp(result.reference_drift, 0.25, 4.0);
}

std::string Policy::Key() const { return absl::StrCat(name, "/", cache, "/", threads); }

}  // namespace hone::record

#include "client/cli/dataset/foreign_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr int kDeepestNesting = 64;
constexpr double kFailureSeconds = 1e9;  // systems write 1e9 or 1e10

int DepthOf(absl::string_view json) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// Replaces bare words that JSON does not have, and a minus before them, by null.
std::string WithoutBareWords(absl::string_view json) {
  std::string result;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text || c == '"' || !absl::ascii_isalpha(c)) {
      if (c == '"') in_text = !in_text;
      result += c;
      if (in_text && c == '\\' && i + 1 < json.size()) result += json[++i];
      continue;
    }
    size_t end = i;
    while (end < json.size() && absl::ascii_isalpha(json[end])) ++end;
    const std::string word = absl::AsciiStrToLower(json.substr(i, end - i));
    if (word == "infinity" || word == "inf" || word == "nan") {
      if (!result.empty() && result.back() == '-') result.pop_back();
      result += "null";
    } else {
      absl::StrAppend(&result, json.substr(i, end - i));
    }
    i = end - 1;
  }
  return result;
}

// The error numbers of Ansor and AutoTVM, from 1.
constexpr record::Outcome kOutcomeOfError[] = {
    record::Outcome::kInvalid,         // the schedule cannot be applied
    record::Outcome::kCompileError,    // host code
    record::Outcome::kCompileError,    // device code
    record::Outcome::kCrash,           // on the device
    record::Outcome::kWrongOutput,     //
    record::Outcome::kCompileTimeout,  //
    record::Outcome::kRunTimeout,      //
    record::Outcome::kCrash,           // unknown
};

}  // namespace

absl::Span<const ForeignFormat> ForeignFormats() {
  // TenSet's measure_records have Ansor's form.
  static const ForeignFormat kFormats[] = {kAnsorFormat, kAutoTvmFormat, kMetaScheduleFormat};
  return kFormats;
}

std::string ForeignSpace(absl::string_view format, const ForeignRecord& record) {
  return absl::StrCat("foreign ", format, ": ", record.reason, "\n", record.steps.dump());
}

std::optional<std::string> ReasonOfForeignSpace(absl::string_view space) {
  if (!absl::ConsumePrefix(&space, "foreign ")) return std::nullopt;
  space = space.substr(0, space.find('\n'));
  const size_t colon = space.find(": ");
  return colon == absl::string_view::npos ? "" : std::string(space.substr(colon + 2));
}

void ReplayCount::Add(bool is_replayed, const std::string& reason) {
  if (is_replayed) {
    ++replayed;
  } else {
    ++not_replayed[reason];
  }
}

std::string ReplayCount::ToText() const {
  int64_t records = replayed;
  std::vector<std::pair<int64_t, std::string>> reasons;
  for (const auto& [reason, count] : not_replayed) {
    records += count;
    reasons.push_back({-count, reason});  // the most frequent first
  }
  std::sort(reasons.begin(), reasons.end());
  std::string text = absl::StrCat("replayed ", replayed, " of ", Counted(records, "record"));
  absl::string_view before = " (not replayed: ";
  for (const auto& [count, reason] : reasons) {
    absl::StrAppend(&text, before, -count, " ", reason);
    before = ", ";
  }
  return absl::StrCat(text, reasons.empty() ? "" : ")");
}

absl::StatusOr<nlohmann::json> ParseForeignLine(absl::string_view line) {
  if (DepthOf(line) > kDeepestNesting) return absl::InvalidArgumentError("nested too deeply");
  auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    json = nlohmann::json::parse(WithoutBareWords(line), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON, or truncated");
  return json;
}

absl::Status SetCost(const nlohmann::json& costs, const nlohmann::json& error_number,
                     ForeignRecord& record) {
  if (!error_number.is_number_integer())
    return absl::InvalidArgumentError("the error number is not a whole number");
  const int64_t error = error_number.get<int64_t>();
  if (error < 0 || error > static_cast<int64_t>(std::size(kOutcomeOfError)))
    return absl::InvalidArgumentError(absl::StrCat("unknown error number ", error));
  if (!costs.is_array()) return absl::InvalidArgumentError("the costs are not a list");
  record.latency_ns = 0;
  record.outcome = error == 0 ? record::Outcome::kInvalid : kOutcomeOfError[error - 1];
  if (error != 0 || costs.empty()) return absl::OkStatus();
  double sum = 0;
  for (const nlohmann::json& cost : costs) {
    if (!cost.is_number() && !cost.is_null())
      return absl::InvalidArgumentError("a cost is not a number");
    const double seconds = cost.is_null() ? NAN : cost.get<double>();
    if (!(seconds > 0) || seconds >= kFailureSeconds) return absl::OkStatus();
    sum += seconds;
  }
  const double latency_ns = sum / static_cast<double>(costs.size()) * 1e9;
  if (!(latency_ns > 0)) return absl::OkStatus();
  record.outcome = record::Outcome::kOk;
  record.latency_ns = latency_ns;
  return absl::OkStatus();
}

}  // namespace hone::cli

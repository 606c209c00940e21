// Ansor (TVM's auto_scheduler) and TenSet: {"i": [[workload key, target, …], [[], steps]],
// "r": [costs, error number, seconds of the whole measurement, time], "v": version}.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/dataset/ansor_replay.h"
#include "client/cli/dataset/foreign_log.h"
#include "client/cli/dataset/foreign_workload.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

using nlohmann::json;

// The arguments of each step: i a whole number from 0 on, s a text, l a list of such numbers.
struct StepForm {
  const char* name;
  const char* arguments;
};
constexpr StepForm kSteps[] = {
    {"AN", "iii"},                       // annotate: stage, loop, kind
    {"CA", "iii"},                       // compute at: stage, target stage, loop
    {"CHR", "isl"},                      // cache read: stage, scope, readers
    {"CHW", "is"},                       // cache write: stage, scope
    {"CI", "i"},                         // compute inline: stage
    {"CR", "i"},                         // compute root: stage
    {"FFSP", "iilii"}, {"FSP", "iiii"},  // split as an earlier step: stage, loop, step, parts
    {"FU", "il"},                        // fuse: stage, loops
    {"PR", "iis"},                       // pragma: stage, loop, text
    {"RE", "il"},                        // reorder: stage, loops
    {"RF", "iii"},                       // rfactor: stage, loop, position
    {"SA", "iiii"},                      // storage align: stage, loop, factor, offset
    {"SP", "iiili"},                     // split: stage, loop, extent, lengths, from the inside
};

bool IsNumber(const json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
}

bool HasForm(const json& value, char form) {
  if (form == 's') return value.is_string();
  if (form == 'i') return IsNumber(value);
  return value.is_array() && std::all_of(value.begin(), value.end(), IsNumber);
}

absl::Status CheckStep(const json& step) {
  if (!step.is_array() || step.empty() || !step[0].is_string())
    return absl::InvalidArgumentError("a step is not a list that begins with a name");
  const std::string& name = step[0].get_ref<const std::string&>();
  for (const StepForm& form : kSteps) {
    if (name != form.name) continue;
    const absl::string_view arguments = form.arguments;
    bool matches = step.size() == arguments.size() + 1;
    for (size_t i = 0; matches && i < arguments.size(); ++i) {
      const json& value = step[i + 1];
      matches = HasForm(value, arguments[i]);
      // Each is of loops, factors or stages; later steps that name this one read them again.
      if (matches && arguments[i] == 'l' && value.size() > kMostLoops) {
        return absl::InvalidArgumentError(absl::StrCat("the step ", name, " has a list of ",
                                                       value.size(), " numbers; at most ",
                                                       kMostLoops, " are read"));
      }
    }
    return matches ? absl::OkStatus()
                   : absl::InvalidArgumentError(
                         absl::StrCat("the step ", name, " has other arguments"));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown step ", name.substr(0, 20)));
}

bool RecognizesAnsor(const json& line) {
  return line.is_object() && line.contains("i") && line.contains("r") && line["i"].is_array() &&
         !line["i"].empty() && line["i"][0].is_array();
}

absl::StatusOr<ForeignRecord> ParseAnsor(const json& line, absl::Span<const std::string>) {
  const json &input = line["i"], &result = line["r"];
  if (input.size() != 2 || input[0].size() < 2 || !input[0][0].is_string() ||
      !input[0][1].is_string()) {
    return absl::InvalidArgumentError("the task has no workload key and target");
  }
  if (!input[1].is_array() || input[1].size() != 2 || !input[1][1].is_array())
    return absl::InvalidArgumentError("the schedule has no steps");
  for (const json& step : input[1][1]) HONE_RETURN_IF_ERROR(CheckStep(step));
  if (!result.is_array() || result.size() != 4 || !result[3].is_number())
    return absl::InvalidArgumentError("the result is not a list of costs, error and times");
  ForeignRecord record{
      .target = input[0][1],
      .key = input[0][0],
      .steps = input[1][1],
      .created_unix_ms =
          static_cast<int64_t>(std::clamp(result[3].get<double>(), 0.0, 1e12)) * 1000};
  HONE_RETURN_IF_ERROR(SetCost(result[0], result[1], record));
  HONE_ASSIGN_OR_RETURN(ForeignWorkload workload, WorkloadOfAnsor(record.key));
  record.workload = workload.text;
  if (workload.text.empty()) {
    record.reason = std::string(kUnknownWorkload);
    return record;
  }
  // The task continues with hardware parameters, the host's target and the layout option.
  const json& task = input[0];
  const int64_t layout =
      task.size() > 4 && task[4].is_number_integer() ? task[4].get<int64_t>() : kLayoutAsGiven;
  absl::StatusOr<std::string> trace = ReplayAnsor(workload, record.steps, layout);
  if (absl::IsFailedPrecondition(trace.status())) {
    const absl::string_view why = trace.status().message();
    record.reason = std::string(why.substr(0, why.find(':')));
    return record;
  }
  HONE_ASSIGN_OR_RETURN(record.trace, std::move(trace));
  return record;
}

}  // namespace

const ForeignFormat kAnsorFormat = {"ansor", false, RecognizesAnsor, ParseAnsor};

}  // namespace hone::cli

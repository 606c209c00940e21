// AutoTVM, version 0.2: {"input": [target, task name, arguments, …], "config": {"index": …,
// "entity": [[knob, kind, value], …]}, "result": [costs, error number, seconds, time], …}.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/cli/dataset/foreign_log.h"
#include "client/cli/dataset/foreign_workload.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

using nlohmann::json;

bool RecognizesAutoTvm(const json& line) {
  return line.is_object() && line.contains("input") && line.contains("config") &&
         line.contains("result");
}

// Splits ("sp") and orders ("re") have lists, annotations ("an") lists of texts, other knobs ("ot")
// any value.
bool IsKnob(const json& knob) {
  if (!knob.is_array() || knob.size() != 3 || !knob[0].is_string() || !knob[1].is_string())
    return false;
  const std::string& kind = knob[1].get_ref<const std::string&>();
  return kind == "ot" || ((kind == "sp" || kind == "re" || kind == "an") && knob[2].is_array());
}

absl::StatusOr<ForeignRecord> ParseAutoTvm(const json& line, absl::Span<const std::string>) {
  const json &input = line["input"], &config = line["config"], &result = line["result"];
  if (!input.is_array() || input.size() < 3 || !input[0].is_string() || !input[1].is_string() ||
      !input[2].is_array()) {
    return absl::InvalidArgumentError("the input is not a target, a task and arguments");
  }
  if (!config.is_object() || !config.contains("entity") || !config["entity"].is_array())
    return absl::InvalidArgumentError("the configuration has no entities");
  for (const json& knob : config["entity"]) {
    if (!IsKnob(knob)) return absl::InvalidArgumentError("unknown kind of entity");
  }
  if (!result.is_array() || result.size() != 4 || !result[3].is_number())
    return absl::InvalidArgumentError("the result is not a list of costs, error and times");
  ForeignRecord record{
      .target = input[0],
      .workload = WorkloadOfAutoTvm(input[1], input[2]),
      .key = json::array({input[1], input[2]}).dump(),
      .steps = config["entity"],
      .created_unix_ms = std::llround(std::clamp(result[3].get<double>(), 0.0, 1e12) * 1000)};
  HONE_RETURN_IF_ERROR(SetCost(result[0], result[1], record));
  const auto task = input[1].get<std::string>();
  // What the knobs do is in the template, a program of TVM, and not in the log.
  record.reason = record.workload.empty()
                      ? std::string(kUnknownWorkload)
                      : absl::StrCat("template ", task.substr(0, task.find('.')));
  return record;
}

}  // namespace

const ForeignFormat kAutoTvmFormat = {"autotvm", false, RecognizesAutoTvm, ParseAutoTvm};

}  // namespace hone::cli

#include "client/cli/network/network_baseline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/json_output.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr char kVersionKey[] = "hone_baselines";
constexpr int kVersion = 1;

Json SpeedJson(const NetworkSpeed& speed) {
  Json steps = Json::array();
  for (const StepSpeed& step : speed.steps) {
    steps.push_back(
        {{"step", step.name}, {"kernel", step.kernel}, {"latency_ns", step.latency_ns}});
  }
  Json json = {{"network", speed.network},
               {"inputs", speed.inputs},
               {"target", speed.target},
               {"threads", speed.threads},
               {"measured_unix_ms", speed.measured_unix_ms},
               {"latency_ns", speed.latency_ns}};
  if (!speed.disturbance.empty()) json["disturbance"] = speed.disturbance;
  json["steps"] = std::move(steps);
  return json;
}

}  // namespace

// Json::get_to calls these functions. They throw Json::exception if a member is missing or has
// another type.
static void from_json(const Json& json, StepSpeed& step) {
  json.at("step").get_to(step.name);
  json.at("kernel").get_to(step.kernel);
  json.at("latency_ns").get_to(step.latency_ns);
}

static void from_json(const Json& json, NetworkSpeed& speed) {
  json.at("network").get_to(speed.network);
  json.at("inputs").get_to(speed.inputs);
  json.at("target").get_to(speed.target);
  json.at("threads").get_to(speed.threads);
  json.at("measured_unix_ms").get_to(speed.measured_unix_ms);
  json.at("latency_ns").get_to(speed.latency_ns);
  speed.disturbance = json.value("disturbance", "");
  json.at("steps").get_to(speed.steps);
}

bool MeasureTheSame(const NetworkSpeed& a, const NetworkSpeed& b) {
  return a.network == b.network && a.inputs == b.inputs && a.target == b.target &&
         a.threads == b.threads;
}

std::string DescribeMeasured(const NetworkSpeed& speed) {
  std::string text = absl::StrCat(speed.network, " (", speed.inputs, ") on ", speed.target);
  if (speed.threads > 0) absl::StrAppend(&text, " with ", Counted(speed.threads, "thread"));
  return text;
}

std::optional<NetworkSpeed> AddBaseline(const NetworkSpeed& speed,
                                        std::vector<NetworkSpeed>& baselines) {
  for (NetworkSpeed& baseline : baselines) {
    if (MeasureTheSame(baseline, speed)) return std::exchange(baseline, speed);
  }
  baselines.push_back(speed);
  return std::nullopt;
}

std::string BaselinesToText(const std::vector<NetworkSpeed>& baselines) {
  Json list = Json::array();
  for (const NetworkSpeed& baseline : baselines) list.push_back(SpeedJson(baseline));
  const Json file = {{kVersionKey, kVersion}, {"baselines", std::move(list)}};
  return absl::StrCat(file.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<std::vector<NetworkSpeed>> ParseBaselines(absl::string_view text) {
  int version = 0;
  std::vector<Json> list;
  try {
    const Json file = Json::parse(text.begin(), text.end());
    file.at(kVersionKey).get_to(version);
    file.at("baselines").get_to(list);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("this is not a file of baselines");
  }
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the baselines have version ", version,
                                                   "; this program reads version ", kVersion));
  }
  std::vector<NetworkSpeed> baselines;
  for (const Json& each : list) {
    bool complete = false;
    try {
      complete = each.get_to(baselines.emplace_back()).latency_ns > 0;
    } catch (const Json::exception&) {
    }
    if (complete) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("baseline ", baselines.size(), ": a member is missing or malformed"));
  }
  return baselines;
}

absl::StatusOr<std::vector<NetworkSpeed>> ReadBaselines(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<NetworkSpeed>> baselines = ParseBaselines(text);
  if (baselines.ok()) return baselines;
  return absl::Status(baselines.status().code(),
                      absl::StrCat(path, ": ", baselines.status().message()));
}

absl::Status WriteBaselines(const std::string& path, const std::vector<NetworkSpeed>& baselines) {
  return WithExitCode(WriteFileAtomically(path, BaselinesToText(baselines)), kExitFailed);
}

}  // namespace hone::cli

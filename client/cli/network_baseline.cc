#include "client/cli/network_baseline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
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
  return {{"network", speed.network},
          {"inputs", speed.inputs},
          {"target", speed.target},
          {"threads", speed.threads},
          {"measured_unix_ms", speed.measured_unix_ms},
          {"latency_ns", speed.latency_ns},
          {"steps", std::move(steps)}};
}

// Reads the members of an object. ok() is false if one is missing or has another type.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  bool ok() const { return ok_; }
  Members& Read(const char* name, std::string& value) {
    const Json* const member = Find(name, [](const Json& json) { return json.is_string(); });
    if (member != nullptr) value = member->get<std::string>();
    return *this;
  }
  template <typename T>
  Members& Read(const char* name, T& value) {
    const Json* const member = Find(name, [](const Json& json) { return json.is_number(); });
    if (member != nullptr) value = member->get<T>();
    return *this;
  }
  const Json& List(const char* name) {
    static const Json* const empty = new Json(Json::array());
    const Json* const member = Find(name, [](const Json& json) { return json.is_array(); });
    return member != nullptr ? *member : *empty;
  }

 private:
  template <typename Is>
  const Json* Find(const char* name, Is is) {
    if (object_.is_object()) {
      const auto member = object_.find(name);
      if (member != object_.end() && is(*member)) return &*member;
    }
    ok_ = false;
    return nullptr;
  }

  const Json& object_;
  bool ok_ = true;
};

bool Parse(const Json& json, NetworkSpeed& speed) {
  Members members(json);
  members.Read("network", speed.network)
      .Read("inputs", speed.inputs)
      .Read("target", speed.target)
      .Read("threads", speed.threads)
      .Read("measured_unix_ms", speed.measured_unix_ms)
      .Read("latency_ns", speed.latency_ns);
  for (const Json& each : members.List("steps")) {
    StepSpeed& step = speed.steps.emplace_back();
    Members fields(each);
    fields.Read("step", step.name).Read("kernel", step.kernel).Read("latency_ns", step.latency_ns);
    if (!fields.ok()) return false;
  }
  return members.ok() && speed.latency_ns > 0;
}

}  // namespace

bool MeasureTheSame(const NetworkSpeed& a, const NetworkSpeed& b) {
  return a.network == b.network && a.inputs == b.inputs && a.target == b.target &&
         a.threads == b.threads;
}

std::string DescribeMeasured(const NetworkSpeed& speed) {
  return absl::StrCat(speed.network, " (", speed.inputs, ") on ", speed.target, " with ",
                      speed.threads, speed.threads == 1 ? " thread" : " threads");
}

std::string BaselinesToText(const std::vector<NetworkSpeed>& baselines) {
  Json list = Json::array();
  for (const NetworkSpeed& baseline : baselines) list.push_back(SpeedJson(baseline));
  const Json file = {{kVersionKey, kVersion}, {"baselines", std::move(list)}};
  return absl::StrCat(file.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<std::vector<NetworkSpeed>> ParseBaselines(absl::string_view text) {
  const Json file = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  int version = 0;
  Members members(file);
  const Json& list = members.Read(kVersionKey, version).List("baselines");
  if (!members.ok()) return absl::InvalidArgumentError("this is not a file of baselines");
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the baselines have version ", version,
                                                   "; this program reads version ", kVersion));
  }
  std::vector<NetworkSpeed> baselines;
  for (const Json& each : list) {
    if (!Parse(each, baselines.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("baseline ", baselines.size(), " lacks a member, or one is malformed"));
    }
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

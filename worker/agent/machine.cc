#include "worker/agent/machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/machine_load.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "spdlog/spdlog.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/child_process.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kPeakLifetime = absl::Hours(24);
// Each attempt waits half a minute for the timing lock.
constexpr int kPeakAttempts = 20;

// Runs a program that prints a JSON object. FailedPrecondition: the program fails.
absl::StatusOr<nlohmann::json> JsonOf(const std::vector<std::string>& command) {
  HONE_ASSIGN_OR_RETURN(const std::string text, OutputOf(command));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object()) return json;
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(command, " "), " prints no JSON object"));
}

// Returns whether this time was within the last day. A later time was set by a wrong clock.
bool IsRecent(time_t time) {
  const absl::Duration age = absl::Now() - absl::FromTimeT(time);
  return age >= absl::ZeroDuration() && age < kPeakLifetime;
}

// Returns the peaks, measured now by this command or within the last day on the same target.
absl::StatusOr<nlohmann::json> Peaks(std::vector<std::string> command, const std::string& cache) {
  struct stat file;
  if (stat(cache.c_str(), &file) == 0 && IsRecent(file.st_mtime)) {
    const absl::StatusOr<std::string> text = ReadFile(cache);
    nlohmann::json json =
        text.ok() ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    // Earlier versions measured no calibration.
    if (json.is_object() && json.contains("calibration")) return json;
  }
  spdlog::info("measuring this machine, which takes some seconds");
  absl::StatusOr<nlohmann::json> measured = JsonOf(command);
  for (int i = 1; i < kPeakAttempts && absl::IsUnavailable(measured.status()); ++i) {
    spdlog::warn(
        "waiting to measure the peak of this machine, because other Hone processes are measuring: "
        "{}",
        std::string(measured.status().message()));
    measured = JsonOf(command);
  }
  HONE_ASSIGN_OR_RETURN(nlohmann::json json, std::move(measured));
  // Values measured on a busy machine are not cached.
  if (json.value("steady", false)) HONE_RETURN_IF_ERROR(WriteFileAtomically(cache, json.dump()));
  return json;
}

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLittleDisk = 64 * kMiB;
constexpr int64_t kLittleMemory = 256 * kMiB;

BoardFinding Memory() {
  const int64_t bytes = target::DescribeHost().memory_bytes;
  BoardFinding finding{"memory", bytes >= kLittleMemory, absl::StrCat(bytes / kMiB, " MiB"), ""};
  if (!finding.ok) finding.advice = "only small workloads fit; larger ones are refused";
  return finding;
}

BoardFinding Cores() {
  const std::vector<target::CpuCluster> clusters = target::CpuClusters("", target::UsableCpus());
  BoardFinding finding{"cores", clusters.size() <= 1, target::DescribeClusters(clusters), ""};
  if (!finding.ok) {
    finding.advice =
        "kernels run on cores of several kinds; give each kind a worker with --cluster NUMBER, and "
        "its own --name and --state-dir";
  }
  return finding;
}

BoardFinding Disk(const std::string& state_dir) {
  const int64_t bytes = AvailableBytes(state_dir);
  BoardFinding finding{"disk", bytes >= kLittleDisk,
                       absl::StrCat(bytes / kMiB, " MiB are free for ", state_dir), ""};
  if (!finding.ok) {
    finding.advice = "name a folder on a larger disk, or a USB stick, with --state-dir";
  }
  return finding;
}

}  // namespace

absl::StatusOr<target::DeviceList> ListDevices(const std::vector<std::string>& runner) {
  std::vector<std::string> command = runner;
  command.push_back("--list-devices");
  HONE_ASSIGN_OR_RETURN(const std::string text, OutputOf(command));
  absl::StatusOr<target::DeviceList> list = target::DeviceList::FromJson(text);
  if (list.ok()) return list;
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(command, " "), ": ", list.status().message()));
}

absl::StatusOr<v1::Capabilities> DescribeMachine(const MachineOptions& options) {
  const std::string builder = options.program_dir + "/hone-builder";
  const target::HostFacts host = target::DescribeHost();
  const bool is_cpu = options.device == "cpu";
  target::ListedDevice device{.device = options.device};
  if (is_cpu) {
    device.target = target::DetectHost();
  } else {
    HONE_ASSIGN_OR_RETURN(const target::DeviceList list, ListDevices(options.runner));
    HONE_ASSIGN_OR_RETURN(device, list.Find(options.device));
  }
  const target::Target& target = device.target;
  v1::Capabilities capabilities;
  capabilities.set_host(host.name);
  capabilities.set_target(target.ToText());
  capabilities.set_target_key(target.Key());
  capabilities.set_can_build(options.build && IsProgram(builder));
  capabilities.set_can_run(!options.runner.empty());
  capabilities.set_memory_bytes(host.memory_bytes);
  if (!capabilities.can_build() && !capabilities.can_run()) {
    const char* wanted =
        options.build ? "neither hone-builder nor hone-runner is" : "hone-runner is not";
    return absl::FailedPreconditionError(absl::StrCat(
        wanted, " in ", options.program_dir, "; name the programs' folder with --program-dir"));
  }
  v1::Environment& environment = *capabilities.mutable_environment();
  environment.set_cpu(is_cpu ? host.cpu : device.name);
  // Records made with different drivers come from different environments.
  environment.set_isa(is_cpu ? host.isa : device.driver);
  if (!is_cpu) capabilities.set_accelerator(device.name);
  environment.set_cores(target.cores);
  environment.set_os(host.os);
  environment.set_governor(host.governor);
  environment.set_hone_version(HONE_VERSION);
  if (capabilities.can_build()) {
    capabilities.set_build_slots(options.build_slots > 0 ? options.build_slots : host.cores);
    HONE_ASSIGN_OR_RETURN(const nlohmann::json about, JsonOf({builder, "--describe"}));
    environment.set_compiler(about.value("compiler", ""));
    environment.set_codegen_version(about.value("codegen_version", 0));
    for (const auto& isa : about.value("isas", nlohmann::json::array())) {
      if (isa.is_string()) capabilities.add_build_isas(isa.get<std::string>());
    }
  }
  // Peaks measured under an emulator mean nothing, and would take minutes.
  if (capabilities.can_run() && !target::IsEmulated()) {
    std::vector<std::string> command = options.runner;
    command.insert(command.end(), {"--measure-peak", "--lock", options.lock});
    if (!is_cpu) command.insert(command.end(), {"--device", device.device});
    HONE_ASSIGN_OR_RETURN(
        const nlohmann::json peaks,
        Peaks(command, absl::StrCat(options.state_dir, "/peak-", target.Key(), ".json")));
    const absl::StatusOr<target::Calibration> calibration =
        target::Calibration::FromText(peaks.value("calibration", ""));
    if (calibration.ok()) {
      device.target.calibration = *calibration;
      capabilities.set_target(target.ToText());
    } else {
      spdlog::warn("{}", std::string(calibration.status().message()));
    }
    capabilities.set_peak_gflops(peaks.value("gflops_all_cores", 0.0));
    capabilities.set_peak_gflops_one_core(peaks.value("gflops_one_core", 0.0));
    capabilities.set_read_gbps(peaks.value("read_gbps_all_cores", 0.0));
  }
  return capabilities;
}

absl::StatusOr<std::vector<BoardFinding>> CheckBoard(const std::vector<std::string>& runner,
                                                     const std::string& state_dir,
                                                     const std::string& root) {
  std::vector<std::string> command = runner;
  command.push_back("--describe");
  HONE_ASSIGN_OR_RETURN(const std::string text, OutputOf(command));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("conditions")) {
    return absl::FailedPreconditionError(
        "hone-runner --describe printed no conditions; are hone-runner and hone-worker the same "
        "version?");
  }
  std::vector<BoardFinding> findings = {
      {"target", true, target::DetectHost().Key(), ""},
      {"C library", true,
       runner.size() > 1 && runner[1] == "--library-path" ? "that of the bundle"
                                                          : "that of this machine",
       ""},
      Cores(),
      Memory(),
      Disk(state_dir)};
  if (const std::optional<MachineLoad> load = CheckLoad(root); load.has_value()) {
    findings.push_back({"load", !load->disturbs, load->finding, load->advice});
  }
  for (const nlohmann::json& condition : json["conditions"]) {
    findings.push_back({condition.value("name", ""), condition.value("ok", false),
                        condition.value("finding", ""), condition.value("advice", "")});
  }
  return findings;
}

std::string ToText(const std::vector<BoardFinding>& findings) {
  std::string text;
  for (const BoardFinding& finding : findings) {
    absl::StrAppendFormat(&text, "%-8s %-16s %s\n", finding.ok ? "ok" : "warning", finding.name,
                          finding.finding);
    if (!finding.advice.empty()) absl::StrAppend(&text, "         -> ", finding.advice, "\n");
  }
  return text;
}

}  // namespace hone::agent

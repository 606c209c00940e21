#include "worker/agent/board_check.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/machine_load.h"
#include "common/base/status_macros.h"
#include "common/target/cpu_clusters.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "worker/agent/disk_share.h"
#include "worker/agent/program_output.h"

namespace hone::agent {
namespace {

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

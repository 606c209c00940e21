#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/fleet/health_check.h"
#include "client/cli/fleet/quiet_check.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/target_argument.h"
#include "client/connection/program_call.h"
#include "common/base/counted.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr char kIndent[] = "        ";  // of the lines after the first line of a check
constexpr int kServerPort = 7070;       // the port in the examples of hone-server's help

absl::Status Doctor(const Globals& globals, bool prepare) {
  if (prepare) {
    if (globals.json) return PrintJson({{"script", PrepareScript()}});
    absl::PrintF("%s", PrepareScript());
    return absl::OkStatus();
  }
  std::vector<HealthCheck> checks;
  const auto add = [&](std::vector<HealthCheck> more) {
    std::move(more.begin(), more.end(), std::back_inserter(checks));
  };
  // These checks fork; they must run before the connection to the server starts threads.
  add(CheckMachine());
  add(CheckQuiet());
  if (globals.server.empty()) add(CheckPrograms(ProgramDir()));
  if (globals.server.empty()) {
    const absl::StatusOr<target::DeviceList> devices = client::ListDevices();
    add(CheckDevices(devices, globals.target));
    add(CheckTarget(globals));
    add(CheckNvrtc(
        client::CallProgram(
            {.program = "hone-builder", .purpose = "compiles kernels", .words = {"--describe"}}),
        TargetArgument{.given = globals.target}.KindOfTarget() == target::Kind::kCuda ||
            (devices.ok() && !devices->problems.contains("cuda"))));
  }
  if (globals.server.empty()) add(CheckDataFolder());
  Globals any_target = globals;
  any_target.target.clear();
  any_target.warns_of_store = false;  // CheckServer reports it
  std::vector<HealthCheck> server = CheckServer(any_target);
  const bool reached = server[0].state != HealthCheck::State::kProblem;
  add(std::move(server));
  if (!globals.server.empty()) {
    if (reached) add(CheckTarget(globals));
    add(CheckSecurity(any_target));
  }
  if (globals.server.empty()) add(CheckPort(kServerPort));

  const auto problems = std::count_if(checks.begin(), checks.end(), [](const HealthCheck& check) {
    return check.state == HealthCheck::State::kProblem;
  });
  const absl::Status result =
      problems == 0 ? absl::OkStatus() : absl::AbortedError(Counted(problems, "problem"));
  if (globals.json) {
    Json list = Json::array();
    for (const HealthCheck& check : checks) {
      list.push_back({{"name", check.name},
                      {"state", HealthStateName(check.state)},
                      {"finding", check.finding},
                      {"advice", check.advice}});
    }
    return PrintJson({{"ok", problems == 0}, {"checks", std::move(list)}}, result);
  }
  for (const HealthCheck& check : checks) {
    PrintWrapped(
        absl::StrFormat("%-8s %-16s %s", HealthStateName(check.state), check.name, check.finding),
        kIndent);
    if (!check.advice.empty()) PrintWrapped(absl::StrCat(kIndent, "-> ", check.advice), kIndent);
  }
  std::fflush(stdout);
  return result;
}

}  // namespace

void AddDoctor(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("doctor", "Check this machine, the programs, the store and the server");
  auto prepare = std::make_shared<bool>(false);
  command.AddFlag("--prepare", *prepare,
                  "Check nothing; print a script that makes this machine quiet for measurements");
  Complete(command, globals,
           "The exit code is 1 if there is a problem. Warnings and problems come with advice.\n\n"
           "Examples:\n"
           "  hone doctor\n"
           "  hone doctor --prepare | sudo sh\n"
           "  hone doctor --server hone.internal:7070 --json",
           [&globals, prepare] { return Doctor(globals, *prepare); });
}

}  // namespace hone::cli

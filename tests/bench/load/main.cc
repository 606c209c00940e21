// A thousand workers against one server: real processes over TCP, in which only the devices are
// simulated. See --help.
#include <signal.h>

#include <cstdio>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "tests/bench/load/driver.h"
#include "tests/bench/load/session_process.h"

int main(int argc, char** argv) {
  using hone::Hidden;
  using hone::Range;
  using hone::ShowDefault;
  hone::Command app(
      "Starts a hone-server with a new store, processes that each play many workers, and jobs; "
      "lets "
      "them run, and prints a table.\nExample: HONE_BIN_DIR=build/release/bin "
      "build/release/bench/load_benchmark --rate 3300 --seconds 60");
  hone::load::LoadOptions options;
  hone::load::SessionProcessOptions part;
  app.Add("--sessions", options.sessions, "Workers", {ShowDefault()});
  app.Add("--processes", options.processes, "That play them", {ShowDefault()});
  app.Add("--connections", options.connections, "That they share", {ShowDefault()});
  app.Add("--rate", options.rate, "Results a second that all devices together can make",
          {ShowDefault()});
  app.Add("--slots", options.slots, "Leases that a worker holds", {ShowDefault()});
  app.Add("--seconds", options.seconds, "That are measured", {ShowDefault(), Range(1.0, 1e6)});
  app.Add("--warm-up", options.warm_up, "Seconds before", {ShowDefault()});
  app.Add("--jobs", options.jobs.jobs, "Under way at a time", {ShowDefault()});
  app.Add("--trials", options.jobs.trials, "Of a job", {ShowDefault()});
  app.Add("--strategy", options.jobs.strategy, "Of the jobs", {ShowDefault()});
  app.Add("--cost-model", options.jobs.cost_model, "Of the jobs", {ShowDefault()});
  app.Add("--store", options.store, "Use this store, and leave it; default: a new one for the run");
  app.Add("--look-ups", options.look_ups,
          "Look-ups of a best a second, in a --store that store_scale_benchmark filled");
  app.AddFlag("--each-second", options.each_second,
              "Print figures of each second before the table, as CSV");
  app.AddFlag("--check", options.check, "Fail where something was lost, refused or failed");
  app.Add("--serve-sessions", part.server, "What a load process is told", {Hidden()});
  app.Add("--first", part.first, "", {Hidden()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  signal(SIGPIPE, SIG_IGN);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as in hone-server
  absl::Status status;
  if (part.server.empty()) {
    status = hone::load::RunLoad(options);
  } else {
    part.count = options.sessions;
    part.slots = options.slots;
    part.connections = options.connections;
    part.run_time = absl::Seconds(options.sessions / options.rate);
    status = hone::load::RunSessions(part);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "load_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}

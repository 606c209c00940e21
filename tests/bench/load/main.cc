// A thousand workers against one server: real processes over TCP, in which only the devices are
// simulated. See --help.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/bench/load/driver.h"
#include "tests/bench/load/session_process.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Starts a hone-server with a new store, processes that each play many workers, and jobs; "
      "lets "
      "them run, and prints a table.\nExample: HONE_BIN_DIR=build/release/bin "
      "build/release/bench/load_benchmark --rate 3300 --seconds 60");
  hone::load::LoadOptions options;
  hone::load::SessionProcessOptions part;
  app.add_option("--sessions", options.sessions, "Workers")->capture_default_str();
  app.add_option("--processes", options.processes, "That play them")->capture_default_str();
  app.add_option("--connections", options.connections, "That they share")->capture_default_str();
  app.add_option("--rate", options.rate, "Results a second that all devices together can make")
      ->capture_default_str();
  app.add_option("--slots", options.slots, "Leases that a worker holds")->capture_default_str();
  app.add_option("--seconds", options.seconds, "That are measured")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--warm-up", options.warm_up, "Seconds before")->capture_default_str();
  app.add_option("--jobs", options.jobs.jobs, "Under way at a time")->capture_default_str();
  app.add_option("--trials", options.jobs.trials, "Of a job")->capture_default_str();
  app.add_option("--strategy", options.jobs.strategy, "Of the jobs")->capture_default_str();
  app.add_option("--cost-model", options.jobs.cost_model, "Of the jobs")->capture_default_str();
  app.add_option("--store", options.store,
                 "Use this store, and leave it; default: a new one for the run");
  app.add_option("--look-ups", options.look_ups,
                 "Look-ups of a best a second, in a --store that store_scale_benchmark filled");
  app.add_flag("--each-second", options.each_second,
               "Print figures of each second before the table, as CSV");
  app.add_flag("--check", options.check, "Fail where something was lost, refused or failed");
  app.add_option("--serve-sessions", part.server, "What a load process is told")->group("");
  app.add_option("--first", part.first)->group("");
  CLI11_PARSE(app, argc, argv);
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

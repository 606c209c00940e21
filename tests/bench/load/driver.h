#ifndef HONE_TESTS_BENCH_LOAD_DRIVER_H_
#define HONE_TESTS_BENCH_LOAD_DRIVER_H_

#include <string>

#include "absl/status/status.h"
#include "tests/bench/load/job_source.h"

namespace hone::load {

struct LoadOptions {
  int sessions = 1000;
  int processes = 4;
  int slots = 2;
  int connections = 64;  // for all sessions together
  double rate = 3300;    // results per second that all devices together can produce
  double seconds = 60;
  double warm_up = 10;
  JobSourceOptions jobs;
  std::string store;         // "": a new one, removed after the run
  double look_ups = 0;       // per second, of the known workloads
  bool each_second = false;  // print figures of each second before the table, as CSV
  bool check = false;        // fail if something was lost, refused or failed
};

// Starts a server, load processes and jobs, runs them, and prints a table of the results. Errors:
// something could not be started, or `check` failed.
absl::Status RunLoad(const LoadOptions& options);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_DRIVER_H_

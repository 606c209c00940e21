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
  int connections = 64;  // of all sessions together
  double rate = 3300;    // results a second that the devices of all sessions together can make
  double seconds = 60;
  double warm_up = 10;
  JobSourceOptions jobs;
  std::string store;         // "": a new one, which goes with the run
  double look_ups = 0;       // of the known workloads, a second
  bool each_second = false;  // figures of each second before the table, as CSV
  bool check = false;        // the run fails where something was lost, refused or failed
};

// Starts a server, load processes and jobs, lets them run, and prints a table of what happened.
// Errors: something could not be started, or what `check` asks for does not hold.
absl::Status RunLoad(const LoadOptions& options);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_DRIVER_H_

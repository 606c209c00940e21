#ifndef HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_
#define HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::load {

struct SessionProcessOptions {
  std::string server;
  int first = 0;  // number of the first session; numbers are used in worker names
  int count = 1;
  int slots = 2;
  int connections = 1;  // shared by the sessions
  absl::Duration run_time;
  absl::Duration ramp = absl::Seconds(2);  // time over which the sessions register
};

// Runs one load process: sessions until SIGTERM, then one line of Counts on standard output, and an
// abrupt exit, like boards that lose power. Returns only if it cannot start.
absl::Status RunSessions(const SessionProcessOptions& options);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_

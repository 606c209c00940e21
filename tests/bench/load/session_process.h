#ifndef HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_
#define HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::load {

struct SessionProcessOptions {
  std::string server;
  int first = 0;  // number of the first session; numbers name the workers
  int count = 1;
  int slots = 2;
  int connections = 1;  // that they share
  absl::Duration run_time;
  absl::Duration ramp = absl::Seconds(2);  // the sessions register over so long
};

// One load process: sessions until SIGTERM, then one line of Counts on standard output, and the
// process ends, as boards do that lose power. Returns when it cannot begin.
absl::Status RunSessions(const SessionProcessOptions& options);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SESSION_PROCESS_H_

#ifndef HONE_TESTS_BENCH_TABLE_RESULTS_H_
#define HONE_TESTS_BENCH_TABLE_RESULTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::bench {

// One kernel of Hone, as `compare --lines` timed it beside the libraries.
struct KernelResult {
  std::string op;  // with its keys
  std::string trace;
  std::string algorithm;  // rewrites of the trace; empty: none
  int threads = 0;
  double latency_ns = 0;
  double share_of_peak = 0;
  double share_of_copy = 0;
  std::map<std::string, double> over;  // how many times faster than each library
};

// What a candidate of a design space costs before it is timed, as `candidate_benchmark` measured.
struct CandidateResult {
  std::string op;
  int samples = 0;
  double compile_median_ms = 0, compile_p99_ms = 0;
  double replay_median_us = 0, replay_p99_us = 0;
  double replay_us_per_primitive = 0;  // slope of a line through the candidates
  double decision_bytes = 0;           // of a candidate without its space's text, on average
};

struct Machine {
  std::string cpu, target, date;
  int cores = 0;
};

struct Results {
  Machine machine;
  std::vector<KernelResult> kernels;
  std::vector<CandidateResult> candidates;
};

// Reads JSON lines: {"machine": …}, {"comparison": …}, {"candidates": …}. InvalidArgument: a line
// is none of these; the message has its number.
absl::StatusOr<Results> ParseResults(absl::string_view lines);

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_TABLE_RESULTS_H_

#ifndef HONE_TESTS_BENCH_TABLE_RESULTS_H_
#define HONE_TESTS_BENCH_TABLE_RESULTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::bench {

// One kernel of Hone with the libraries' results, from `compare --lines`.
struct KernelResult {
  std::string op;  // with its keys
  std::string trace;
  std::string algorithm;  // the trace's rewrites; empty: none
  int threads = 0;
  double latency_ns = 0;
  double share_of_peak = 0;
  double share_of_copy = 0;
  std::map<std::string, double> over;  // speed ratio to each library
};

// The cost of a candidate before it is timed, from `candidate_benchmark`.
struct CandidateResult {
  std::string op;
  int samples = 0;
  double compile_median_ms = 0, compile_p99_ms = 0;
  double replay_median_us = 0, replay_p99_us = 0;
  double replay_us_per_primitive = 0;  // slope of a line through the candidates
  double decision_bytes = 0;           // average per candidate, without the space's text
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

// Parses JSON lines: {"machine": …}, {"comparison": …}, {"candidates": …}. InvalidArgument: another
// line; the message has its number.
absl::StatusOr<Results> ParseResults(absl::string_view lines);

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_TABLE_RESULTS_H_

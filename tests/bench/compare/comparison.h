#ifndef HONE_TESTS_BENCH_COMPARE_COMPARISON_H_
#define HONE_TESTS_BENCH_COMPARE_COMPARISON_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tests/bench/compare/contender.h"
#include "tests/bench/compare/interleaved.h"

namespace hone::compare {

struct Row {
  std::string name;
  std::string algorithm;  // for rows of Hone: HoneSource::algorithm
  double latency_ns = 0;
  double gflops = 0;
  double share_of_peak = 0;  // of the peak timed in the same rounds; 0: unknown
  double share_of_copy = 0;  // time to copy as many bytes / time of this kernel
  double spread = 0;
  double hone_is_faster = 0;  // speed ratio of the first row of Hone; 0 in its own row
  // For rows of Hone: the speed ratio to each library, by name.
  std::map<std::string, double> over;
};

// The kernels of Hone and the libraries for one workload, timed in the same rounds.
struct Comparison {
  std::string title;
  int threads = 0;
  double flops = 0;
  double peak_gflops = 0;  // median of the rounds
  std::vector<Row> rows;   // rows of Hone first
};

struct CompareOptions {
  TimingOptions timing;
  double bound = 1e-5;  // for differences between contenders, beyond what their rewrites need
};

// Makes the contenders on `threads` threads, checks that they agree, and times them. `sources`: at
// least one, all of one workload. Unimplemented: no library operator is known for the workload.
// Internal: two contenders disagree, or one fails.
absl::StatusOr<Comparison> Compare(const std::vector<HoneSource>& sources, int threads,
                                   const CompareOptions& options);

// Adds the default schedule, as reported by `hone tune --json`, as a row.
void AddDefault(const nlohmann::ordered_json& tuned, Comparison& comparison);

std::string ToTable(const Comparison& comparison);
nlohmann::ordered_json ToJson(const Comparison& comparison);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_COMPARISON_H_

#ifndef HONE_COMMON_RECORD_COUNTERS_H_
#define HONE_COMMON_RECORD_COUNTERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// What was counted while a kernel ran, as MeasureResult::counters carries it.
namespace hone::record {

// A value for one run of the kernel, summed over all of its threads.
struct Counter {
  std::string name;
  double value = 0;
  std::string missing;  // why it was not counted; "" if it was
  friend bool operator==(const Counter&, const Counter&) = default;
};

// The names of counters. Runs on GPUs are not counted.
inline constexpr char kWallNs[] = "wall_ns";            // duration of the counted run
inline constexpr char kProcessorNs[] = "processor_ns";  // processor time
inline constexpr char kPageFaults[] = "page_faults";
inline constexpr char kContextSwitches[] = "context_switches";
// Hardware counters, of the program without the system.
inline constexpr char kCycles[] = "cycles";
inline constexpr char kInstructions[] = "instructions";
inline constexpr char kBranchMisses[] = "branch_misses";
inline constexpr char kL1dMisses[] = "l1d_misses";  // loads that miss the L1 data cache
inline constexpr char kL2Misses[] = "l2_misses";    // requests that miss the L2 cache
inline constexpr char kLlcMisses[] = "llc_misses";  // loads that miss the last level of caches
inline constexpr char kFlops[] = "flops";           // a multiply-add counts as two

// One line per value, such as "cycles 1234.5", and one for the counters that are missing for the
// same reason: "l2_misses,llc_misses ? this processor does not have them".
std::string CountersText(absl::Span<const Counter> counters);
// Leaves out malformed lines, because the text comes from a worker.
std::vector<Counter> ParseCounters(absl::string_view text);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_COUNTERS_H_

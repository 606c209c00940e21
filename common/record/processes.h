#ifndef HONE_COMMON_RECORD_PROCESSES_H_
#define HONE_COMMON_RECORD_PROCESSES_H_

#include "absl/types/span.h"
#include "common/record/record.h"

namespace hone::record {

// Computes latencies that are shown or compared: a kernel is timed in several processes, and its
// latency is their median, because latencies differ more between two processes with the same
// kernel than between the samples of one process.

// A latency of at least this many processes may be compared with others, for example as a speed-up.
inline constexpr int kProcesses = 3;

// Returns the results of several processes as one, with all samples. Its steady latency is the
// median of the processes' steady latencies. REQUIRES: at least one result; all are ok.
MeasureResult MedianOfProcesses(absl::Span<const MeasureResult> results);

// Returns the result of a disturbed process with only the faster half of its samples, and with
// their median as latency. Other work makes a kernel slower but never faster, and often delays only
// some of the samples.
MeasureResult WithFasterHalf(MeasureResult result);

// Returns how many processes a result is the median of; 1 for the result of one process.
int ProcessesOf(const MeasureResult& result);

// Returns whether a stored record comes from a confirmation. The leader of a running search is not
// stored.
inline bool IsConfirmed(const Record& record) {
  return record.id > 0 && record.policy.name == "confirm";
}

// A task of a network gets a kernel even if other work disturbed every process that measured it. So
// does an operator if that kernel was clearly faster than every other finalist even so. The
// published record then has the detail kOnlyDisturbed.

inline constexpr char kOnlyDisturbed[] = "other work disturbed every process";

// Returns whether a published result is that of disturbed processes alone.
inline bool IsOnlyDisturbed(const MeasureResult& result) { return result.detail == kOnlyDisturbed; }

// Returns whether the latency of a record is confirmed: the record comes from a confirmation, in
// which other work did not disturb every process. Any other latency is shown with ~.
inline bool LatencyIsConfirmed(const Record& record) {
  return IsConfirmed(record) && !IsOnlyDisturbed(record.result);
}

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_PROCESSES_H_

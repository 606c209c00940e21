#ifndef HONE_COMMON_RECORD_DISTURBED_H_
#define HONE_COMMON_RECORD_DISTURBED_H_

#include "common/record/processes.h"
#include "common/record/record.h"

// A task of a network gets a kernel even if other work disturbed every process that measured it. So
// does an operator if that kernel was clearly faster than every other finalist even so. The
// published record then has the detail kOnlyDisturbed.
namespace hone::record {

inline constexpr char kOnlyDisturbed[] = "other work disturbed every process";

// Returns whether a published result is that of disturbed processes alone.
inline bool IsOnlyDisturbed(const MeasureResult& result) { return result.detail == kOnlyDisturbed; }

// Returns whether the latency of a record is confirmed: the record comes from a confirmation, in
// which other work did not disturb every process. Any other latency is shown with ~.
inline bool LatencyIsConfirmed(const Record& record) {
  return IsConfirmed(record) && !IsOnlyDisturbed(record.result);
}

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_DISTURBED_H_

#ifndef HONE_CLIENT_CLI_RECORDS_COMPARED_ROWS_H_
#define HONE_CLIENT_CLI_RECORDS_COMPARED_ROWS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/record/record.h"

namespace hone::cli {

// A schedule of a workload that hone compare shows.
struct ComparedRow {
  const char* name;  // "default", "best" or "runner-up"
  record::Record record;
  double latency_ns = 0;  // corrected for the machine's speed, so that rows are comparable
};

// Returns the default schedule, the best, and the fastest schedule with another program. The first
// and the last are left out if no job measured them in record::kProcesses undisturbed processes. If
// several jobs measured a schedule, the latest one counts. `records`: those of the workload and the
// target, in the order of jobs.
std::vector<ComparedRow> RowsOf(const record::Record& best,
                                const std::vector<record::Record>& records);

// Returns the best schedule as it was measured on other inputs, in at least record::kProcesses
// undisturbed processes; nullopt if it was not. `inputs`: as in record::MeasureResult.
std::optional<record::Record> BestOn(const std::string& inputs, const record::Record& best,
                                     const std::vector<record::Record>& records);

// Explains why RowsOf has no default schedule or, if `is_default` is false, no runner-up. Names the
// largest number of undisturbed processes in which one job measured such a schedule.
std::string WhyMissing(bool is_default, const record::Record& best,
                       const std::vector<record::Record>& records);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_COMPARED_ROWS_H_

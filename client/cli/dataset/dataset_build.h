#ifndef HONE_CLIENT_CLI_DATASET_DATASET_BUILD_H_
#define HONE_CLIENT_CLI_DATASET_DATASET_BUILD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/dataset/dataset_builder.h"
#include "client/cli/dataset/foreign_log.h"

namespace hone::cli {

// What was read of the logs in one foreign format.
struct ForeignCount {
  int64_t records = 0;
  int64_t known = 0;    // those of workloads that Hone's language can express
  int64_t skipped = 0;  // malformed records
  ReplayCount replay;
};

// What was read besides the measurements that were added.
struct BuildReport {
  int64_t unsuitable = 0;  // records of exports: confirmations, quarantined ones, defaults
  std::map<std::string, ForeignCount> foreign;  // by format
  int64_t unread_lines = 0;                     // of foreign logs, in no known format
  std::vector<std::string> problems;            // the first few, with file and line
};
inline constexpr size_t kMostProblems = 5;

// Adds a file: a dataset, an export of records, or another system's log (foreign_log.h), of which
// malformed lines are skipped and counted. InvalidArgument: a dataset or an export is malformed,
// which the message explains.
absl::Status AddInput(const std::string& path, DatasetBuilder& builder, BuildReport& report);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_DATASET_BUILD_H_

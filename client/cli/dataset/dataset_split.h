#ifndef HONE_CLIENT_CLI_DATASET_DATASET_SPLIT_H_
#define HONE_CLIENT_CLI_DATASET_DATASET_SPLIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/dataset.h"

namespace hone::cli {

struct SplitOptions {
  std::string by = "task";  // or "network", "device"
  double held_out = 0.2;    // share of the tasks, networks or devices, on average
  uint64_t seed = 1;
  std::vector<std::string> names;  // hold out these instead; see IsNamed in dataset_split.cc
};
struct SplitReport {
  int64_t train_records = 0, test_records = 0;
  int64_t train_groups = 0, test_groups = 0;  // tasks, networks or devices
};

// Names of tasks and devices, as `hone dataset stat` shows them: "matmul 3fa9c1d2", with the first
// digits of the digest of the workload, and the key of the target.
std::string TaskName(const record::DatasetTask& task);
std::string DeviceName(const record::DatasetTarget& target);

// Copies each record into one of two datasets, so that no task, network or device is in both. The
// choice is a hash of the name and the seed, whatever the order of the records. InvalidArgument: no
// such name. FailedPrecondition: one of the two would be empty. Errors also as for Dataset::Read
// and DatasetWriter.
absl::StatusOr<SplitReport> SplitDataset(record::Dataset& dataset, const SplitOptions& options,
                                         record::DatasetWriter& train, record::DatasetWriter& test);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_DATASET_SPLIT_H_

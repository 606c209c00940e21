#ifndef HONE_CLIENT_CLI_DATASET_DATASET_BUILDER_H_
#define HONE_CLIENT_CLI_DATASET_DATASET_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/record/dataset.h"

namespace hone::cli {

// Which measurements a dataset gets. An empty text and 0 select all.
struct DatasetFilter {
  std::string target;  // key, or the text of a foreign target
  std::string op;      // name of the workload
  std::string network;
  int64_t since_unix_ms = 0;
};

// A measurement with the descriptions that its indices will stand for.
struct DatasetEntry {
  record::DatasetTarget target;
  record::DatasetTask task;
  std::string space;
  std::string source;
  record::DatasetRecord record;
};

// "matmul" of "workload matmul\n…", and "KEY" of "foreign ansor KEY".
std::string NameOfWorkload(const std::string& text);
// The key of a target in text form; any other text unchanged.
std::string KeyOfTarget(const std::string& text);

// Adds the selected measurements to a dataset. Used by one thread.
class DatasetBuilder {
 public:
  // REQUIRES: the writer outlives this object.
  DatasetBuilder(record::DatasetWriter* writer, DatasetFilter filter)
      : writer_(writer), filter_(std::move(filter)) {}

  // Errors are those of DatasetWriter::Append.
  absl::Status Add(const DatasetEntry& entry);
  // Adds a whole dataset, page by page. Errors also as for Dataset::Read.
  absl::Status AddDataset(record::Dataset& dataset);

  int64_t added() const { return added_; }
  int64_t left_out() const { return left_out_; }  // not selected

 private:
  friend class DatasetCopy;

  bool Selects(const record::DatasetTarget& target, const record::DatasetTask& task,
               int64_t created_unix_ms) const;

  record::DatasetWriter* const writer_;
  const DatasetFilter filter_;
  int64_t added_ = 0;
  int64_t left_out_ = 0;
};

// Copies records of one dataset. Reads each space once, and keeps none.
class DatasetCopy {
 public:
  // REQUIRES: both outlive this object.
  DatasetCopy(record::Dataset* from, DatasetBuilder* to) : from_(from), to_(to) {}

  // Errors as for Dataset::ReadSpace and DatasetBuilder::Add. REQUIRES: a record of the dataset.
  absl::Status Add(record::DatasetRecord record);

 private:
  record::Dataset* const from_;
  DatasetBuilder* const to_;
  std::vector<int32_t> spaces_;  // the index in the copy; -1: not copied yet
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_DATASET_BUILDER_H_

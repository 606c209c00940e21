#ifndef HONE_COMMON_RECORD_DATASET_H_
#define HONE_COMMON_RECORD_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"

// A dataset is a file of measurements, for training and judging cost models: HDF5 with one array
// per column, which h5py and pandas can read. `targets`, `tasks`, `spaces` and `sources` describe
// what was measured; the records refer to them by index. Texts are stored as one array of
// characters and one of their ends.
namespace hone::record {

// The beginning of DatasetTarget::machine if nothing was timed: the latencies are what a model of
// the CPU says. They are never mixed with measured ones.
inline constexpr char kModelled[] = "modelled: ";

struct DatasetTarget {
  std::string text;     // target::Target::ToText
  std::string machine;  // description of the measuring machine, or of the model, with kModelled
  bool IsModelled() const { return machine.starts_with(kModelled); }
  friend auto operator<=>(const DatasetTarget&, const DatasetTarget&) = default;
};

struct DatasetTask {
  std::string workload;  // text form
  std::string network;   // the network it belongs to; "" for a single operator
  double tolerance = 0;
  friend auto operator<=>(const DatasetTask&, const DatasetTask&) = default;
};

// The most decisions that a record may have.
inline constexpr int64_t kMostDatasetDecisions = 4096;

// A measurement. The first four numbers are indices.
struct DatasetRecord {
  int32_t target = 0;
  int32_t task = 0;
  int32_t space = 0;   // the text of a trace file with open decisions
  int32_t source = 0;  // what proposed the candidate, for example the name of a strategy
  std::vector<int64_t> decisions;
  Outcome outcome = Outcome::kOk;
  double latency_ns = 0;  // steady (SteadyLatencyNs); 0 unless ok
  double dispersion = 0;
  int64_t created_unix_ms = 0;
  friend bool operator==(const DatasetRecord&, const DatasetRecord&) = default;
};

// Writes a dataset, record by record, with bounded memory. The file appears when it is finished.
// Used by one thread at a time.
class DatasetWriter {
 public:
  // Errors are those of the file system; the message names the path.
  static absl::StatusOr<std::unique_ptr<DatasetWriter>> Create(const std::string& path);
  virtual ~DatasetWriter() = default;

  // Return the index of a description, which is added if it is new.
  virtual int32_t Target(const DatasetTarget& target) = 0;
  virtual int32_t Task(const DatasetTask& task) = 0;
  virtual int32_t Space(const std::string& text) = 0;
  virtual int32_t Source(const std::string& name) = 0;

  // InvalidArgument: the file would have both measured and modelled results (kModelled). REQUIRES:
  // its indices were returned by this writer.
  virtual absl::Status Append(const DatasetRecord& record) = 0;
  virtual absl::Status Finish() = 0;
};

// Reads a dataset. Used by one thread at a time.
class Dataset {
 public:
  // Imported records have a space each, so that the spaces may not fit into memory.
  enum class Spaces { kInMemory, kInFile };
  // NotFound: no such file. InvalidArgument: not a dataset, truncated, damaged, or of a newer
  // version; the message names the path and says which.
  static absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& path,
                                                       Spaces where = Spaces::kInMemory);
  virtual ~Dataset() = default;

  virtual const std::vector<DatasetTarget>& targets() const = 0;
  virtual const std::vector<DatasetTask>& tasks() const = 0;
  virtual const std::vector<std::string>& spaces() const = 0;  // empty with kInFile
  // Reads one space; fast if they are read in order. InvalidArgument: no such space, or damaged.
  virtual absl::StatusOr<std::string> ReadSpace(int32_t index) = 0;
  virtual const std::vector<std::string>& sources() const = 0;
  virtual int64_t size() const = 0;  // number of records
  // Returns `count` records from `first` on; fewer at the end. InvalidArgument: damaged.
  virtual absl::StatusOr<std::vector<DatasetRecord>> Read(int64_t first, int64_t count) = 0;
};

// The number of records to read at a time.
inline constexpr int64_t kDatasetPage = 65536;

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_DATASET_H_

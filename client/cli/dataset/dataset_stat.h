#ifndef HONE_CLIENT_CLI_DATASET_DATASET_STAT_H_
#define HONE_CLIENT_CLI_DATASET_DATASET_STAT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "client/cli/dataset/foreign_log.h"
#include "common/record/dataset.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// Counts different values of a stream in bounded memory (Bar-Yossef et al., 2002): exactly up to
// `kept`, and then with a relative standard error of 1 / sqrt(kept), from the smallest hashes.
class DistinctCount {
 public:
  explicit DistinctCount(size_t kept) : kept_(kept) {}
  void Add(uint64_t hash);
  int64_t Value() const;
  bool is_exact() const { return !is_full_; }

 private:
  size_t kept_;
  bool is_full_ = false;
  std::set<uint64_t> smallest_;
};

// Latencies of a stream in bounded memory: the median is accurate to 0.1 %.
class LatencySummary {
 public:
  void Add(double latency_ns);
  double best() const { return best_; }  // 0: none
  double Median() const;                 // 0: none
  int64_t count() const { return count_; }

 private:
  std::map<int, int64_t> counts_;  // by logarithm
  double best_ = 0, worst_ = 0;
  int64_t count_ = 0;
};

struct DatasetGroup {
  int64_t records = 0;
  LatencySummary latency;  // of those that are ok
  DistinctCount candidates{4096};
};

struct DatasetStat {
  int64_t records = 0;
  DistinctCount candidates{65536};
  std::map<std::pair<std::string, std::string>, DatasetGroup> devices;  // device, machine
  std::map<std::pair<std::string, std::string>, DatasetGroup> tasks;    // network, task
  std::map<std::pair<std::string, std::string>, DatasetGroup> sources;  // source, outcome
  std::map<std::string, ReplayCount> replays;  // of foreign logs, by format
};

// Errors as for Dataset::Read and ReadSpace.
absl::StatusOr<DatasetStat> StatDataset(record::Dataset& dataset);
// The tables that `hone dataset stat` prints, and the object of --json.
std::string StatText(const DatasetStat& stat, int columns);
nlohmann::ordered_json StatJson(const DatasetStat& stat);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_DATASET_STAT_H_

#include "client/cli/dataset/dataset_stat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/cli/dataset/dataset_split.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "common/base/counted.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr double kStepsPerUnit = 1000;  // of the natural logarithm

std::string CountText(const DistinctCount& count) {
  return absl::StrCat(count.is_exact() ? "" : "~", count.Value());
}

// One of the three tables. `first` and `second` name the parts of the keys.
std::string TableText(const std::map<std::pair<std::string, std::string>, DatasetGroup>& groups,
                      const char* first, const char* second, int columns) {
  Table table({Left(first), Left(second), Right("records"), Right("ok"), Right("candidates"),
               Right("best"), Right("median")});
  for (const auto& [key, group] : groups) {
    table.AddRow({key.first.empty() ? "-" : key.first, key.second.empty() ? "-" : key.second,
                  absl::StrCat(group.records), absl::StrCat(group.latency.count()),
                  CountText(group.candidates), FormatLatency(group.latency.best()),
                  FormatLatency(group.latency.Median())});
  }
  return table.ToText(columns);
}

nlohmann::ordered_json ListOf(
    const std::map<std::pair<std::string, std::string>, DatasetGroup>& groups, const char* first,
    const char* second) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [key, group] : groups) {
    list.push_back({{first, key.first},
                    {second, key.second},
                    {"record_count", group.records},
                    {"ok_count", group.latency.count()},
                    {"candidate_count", group.candidates.Value()},
                    {"candidate_count_is_exact", group.candidates.is_exact()},
                    {"best_latency_ns", group.latency.best()},
                    {"median_latency_ns", group.latency.Median()}});
  }
  return list;
}

// A line for each foreign format; "" if there is none.
std::string ReplayText(const DatasetStat& stat) {
  std::string text;
  for (const auto& [format, count] : stat.replays)
    absl::StrAppend(&text, text.empty() ? "\n" : "", format, ": ", count.ToText(), "\n");
  return text;
}

nlohmann::ordered_json ReplayJson(const DatasetStat& stat) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [format, count] : stat.replays) {
    list.push_back({{"format", format},
                    {"replayed_count", count.replayed},
                    {"not_replayed", count.not_replayed}});
  }
  return list;
}

}  // namespace

void DistinctCount::Add(uint64_t hash) {
  if (is_full_ && hash >= *smallest_.rbegin()) return;
  smallest_.insert(hash);
  if (smallest_.size() <= kept_) return;
  is_full_ = true;
  smallest_.erase(std::prev(smallest_.end()));
}

int64_t DistinctCount::Value() const {
  if (!is_full_) return static_cast<int64_t>(smallest_.size());
  // The largest of k smallest of n hashes is at k / n of their range, on average.
  const double share = static_cast<double>(*smallest_.rbegin()) * 0x1p-64;
  return std::llround(static_cast<double>(kept_ - 1) / share);
}

void LatencySummary::Add(double latency_ns) {
  ++counts_[static_cast<int>(std::lround(std::log(latency_ns) * kStepsPerUnit))];
  best_ = count_ == 0 ? latency_ns : std::min(best_, latency_ns);
  worst_ = std::max(worst_, latency_ns);
  ++count_;
}

double LatencySummary::Median() const {
  int64_t before = 0;
  for (const auto& [step, count] : counts_) {
    before += count;
    if (2 * before >= count_) return std::clamp(std::exp(step / kStepsPerUnit), best_, worst_);
  }
  return 0;
}

absl::StatusOr<DatasetStat> StatDataset(record::Dataset& dataset) {
  DatasetStat stat;
  // Of each description, what the records need.
  std::vector<DatasetGroup*> devices, tasks;
  std::vector<Digest> workloads;
  for (const record::DatasetTarget& target : dataset.targets())
    devices.push_back(&stat.devices[{DeviceName(target), target.machine}]);
  std::vector<bool> is_foreign;  // by source
  for (const std::string& source : dataset.sources()) {
    is_foreign.push_back(absl::c_any_of(
        ForeignFormats(), [&](const ForeignFormat& format) { return source == format.name; }));
  }
  std::map<std::string, int32_t> reason_numbers;
  std::vector<std::string> reasons;
  std::vector<int32_t> reason_of_space;  // -2: not read yet; -1: replayed
  for (const record::DatasetTask& task : dataset.tasks()) {
    tasks.push_back(&stat.tasks[{task.network, TaskName(task)}]);
    workloads.push_back(DigestOf(task.workload));
  }
  for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::DatasetRecord> page,
                          dataset.Read(first, record::kDatasetPage));
    for (const record::DatasetRecord& record : page) {
      DigestBuilder candidate;
      candidate.Add(workloads[record.task]).Add(int64_t{record.target}).Add(int64_t{record.space});
      for (const int64_t decision : record.decisions) candidate.Add(decision);
      const uint64_t hash = candidate.Finish().high;
      const std::string outcome(record::OutcomeName(record.outcome));
      for (DatasetGroup* const group :
           {devices[record.target], tasks[record.task],
            &stat.sources[{dataset.sources()[record.source], outcome}]}) {
        ++group->records;
        group->candidates.Add(hash);
        if (record.outcome == record::Outcome::kOk) group->latency.Add(record.latency_ns);
      }
      ++stat.records;
      stat.candidates.Add(hash);
      if (!is_foreign[record.source]) continue;
      if (static_cast<size_t>(record.space) >= reason_of_space.size())
        reason_of_space.resize(record.space + 1, -2);
      int32_t& reason = reason_of_space[record.space];
      if (reason == -2) {
        HONE_ASSIGN_OR_RETURN(const std::string space, dataset.ReadSpace(record.space));
        const std::optional<std::string> why = ReasonOfForeignSpace(space);
        reason = -1;
        if (why.has_value()) {
          reason = reason_numbers.try_emplace(*why, reasons.size()).first->second;
          if (static_cast<size_t>(reason) == reasons.size()) reasons.push_back(*why);
        }
      }
      stat.replays[dataset.sources()[record.source]].Add(reason < 0,
                                                         reason < 0 ? "" : reasons[reason]);
    }
  }
  return stat;
}

std::string StatText(const DatasetStat& stat, int columns) {
  return absl::StrCat(Counted(stat.records, "record"), ", ", CountText(stat.candidates),
                      " distinct candidates, ", Counted(stat.tasks.size(), "task"), ", ",
                      Counted(stat.devices.size(), "device"), "\n\n",
                      TableText(stat.devices, "device", "machine", columns), "\n",
                      TableText(stat.tasks, "network", "task", columns), "\n",
                      TableText(stat.sources, "source", "outcome", columns), ReplayText(stat));
}

nlohmann::ordered_json StatJson(const DatasetStat& stat) {
  return {{"record_count", stat.records},
          {"candidate_count", stat.candidates.Value()},
          {"candidate_count_is_exact", stat.candidates.is_exact()},
          {"devices", ListOf(stat.devices, "target", "machine")},
          {"tasks", ListOf(stat.tasks, "network", "task")},
          {"sources", ListOf(stat.sources, "source", "outcome")},
          {"replays", ReplayJson(stat)}};
}

}  // namespace hone::cli

#include "client/cli/dataset/dataset_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"

namespace hone::cli {

std::string NameOfWorkload(const std::string& text) {
  absl::string_view rest = absl::string_view(text).substr(0, text.find('\n'));
  if (absl::ConsumePrefix(&rest, "foreign ")) rest.remove_prefix(rest.find(' ') + 1);
  absl::ConsumePrefix(&rest, "workload ");
  return std::string(rest);
}

std::string KeyOfTarget(const std::string& text) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(text);
  return target.ok() ? target->Key() : text;
}

bool DatasetBuilder::Selects(const record::DatasetTarget& target, const record::DatasetTask& task,
                             int64_t created_unix_ms) const {
  return (filter_.target.empty() || KeyOfTarget(target.text) == filter_.target) &&
         (filter_.op.empty() || NameOfWorkload(task.workload) == filter_.op) &&
         (filter_.network.empty() || task.network == filter_.network) &&
         created_unix_ms >= filter_.since_unix_ms;
}

absl::Status DatasetBuilder::Add(const DatasetEntry& entry) {
  if (!Selects(entry.target, entry.task, entry.record.created_unix_ms)) {
    ++left_out_;
    return absl::OkStatus();
  }
  record::DatasetRecord record = entry.record;
  record.target = writer_->Target(entry.target);
  record.task = writer_->Task(entry.task);
  record.space = writer_->Space(entry.space);
  record.source = writer_->Source(entry.source);
  ++added_;
  return writer_->Append(record);
}

absl::Status DatasetBuilder::AddDataset(record::Dataset& dataset) {
  DatasetCopy copy(&dataset, this);
  for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::DatasetRecord> page,
                          dataset.Read(first, record::kDatasetPage));
    for (const record::DatasetRecord& record : page) HONE_RETURN_IF_ERROR(copy.Add(record));
  }
  return absl::OkStatus();
}

absl::Status DatasetCopy::Add(record::DatasetRecord record) {
  const record::DatasetTarget& target = from_->targets()[record.target];
  const record::DatasetTask& task = from_->tasks()[record.task];
  if (!to_->Selects(target, task, record.created_unix_ms)) {
    ++to_->left_out_;
    return absl::OkStatus();
  }
  if (static_cast<size_t>(record.space) >= spaces_.size()) spaces_.resize(record.space + 1, -1);
  int32_t& space = spaces_[record.space];
  if (space < 0) {
    HONE_ASSIGN_OR_RETURN(const std::string text, from_->ReadSpace(record.space));
    space = to_->writer_->Space(text);
  }
  record.source = to_->writer_->Source(from_->sources()[record.source]);
  record.target = to_->writer_->Target(target);
  record.task = to_->writer_->Task(task);
  record.space = space;
  ++to_->added_;
  return to_->writer_->Append(record);
}

}  // namespace hone::cli

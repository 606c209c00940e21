#include "client/cli/dataset/dataset_split.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/cli/dataset/dataset_builder.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"

namespace hone::cli {
namespace {

constexpr size_t kShownDigits = 8;

// Equal for equal workloads, also if their texts differ.
std::string WorkloadDigest(const std::string& text) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  return (workload.ok() ? workload->StructuralDigest() : DigestOf(text)).ToHex();
}

// What must not be divided: `name` identifies it, and `titles` are its names for users.
struct SplitGroup {
  std::string name;
  std::set<std::string> titles;
};

SplitGroup GroupOfTask(const record::DatasetTask& task) {
  const std::string digest = WorkloadDigest(task.workload), name = NameOfWorkload(task.workload);
  return {digest, {name, digest, digest.substr(0, kShownDigits), TaskName(task)}};
}

// Whether each group is held out, by index of a task or target.
absl::StatusOr<std::vector<bool>> HeldOut(const std::vector<SplitGroup>& groups,
                                          const SplitOptions& options) {
  std::vector<bool> held_out;
  for (const std::string& name : options.names) {
    if (!absl::c_any_of(groups, [&](const SplitGroup& each) { return each.titles.contains(name); }))
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is no ", options.by, " of the dataset; hone dataset stat lists them"));
  }
  for (const SplitGroup& group : groups) {
    const Digest digest =
        DigestBuilder().Add(static_cast<int64_t>(options.seed)).Add(group.name).Finish();
    const double position = static_cast<double>(digest.high >> 11) * 0x1p-53;  // 0 ≤ position < 1
    held_out.push_back(options.names.empty() ? position < options.held_out
                                             : absl::c_any_of(
                                                   options.names,
                                                   [&](const std::string& name) {
                                                     return group.titles.contains(name);
                                                   }));
  }
  return held_out;
}

}  // namespace

std::string TaskName(const record::DatasetTask& task) {
  return absl::StrCat(NameOfWorkload(task.workload), " ",
                      WorkloadDigest(task.workload).substr(0, kShownDigits));
}

std::string DeviceName(const record::DatasetTarget& target) { return KeyOfTarget(target.text); }

absl::StatusOr<SplitReport> SplitDataset(record::Dataset& dataset, const SplitOptions& options,
                                         record::DatasetWriter& train,
                                         record::DatasetWriter& test) {
  const bool by_device = options.by == "device";
  std::vector<SplitGroup> groups;
  if (by_device) {
    for (const record::DatasetTarget& target : dataset.targets())
      groups.push_back({DeviceName(target), {DeviceName(target), target.machine}});
  } else {
    for (const record::DatasetTask& task : dataset.tasks())
      groups.push_back(options.by == "task" ? GroupOfTask(task)
                                            : SplitGroup{task.network, {task.network}});
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<bool> held_out, HeldOut(groups, options));
  DatasetBuilder parts[] = {DatasetBuilder(&train, {}), DatasetBuilder(&test, {})};
  std::set<std::string> names[2];
  DatasetCopy copies[] = {DatasetCopy(&dataset, &parts[0]), DatasetCopy(&dataset, &parts[1])};
  for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::DatasetRecord> page,
                          dataset.Read(first, record::kDatasetPage));
    for (const record::DatasetRecord& record : page) {
      const int32_t group = by_device ? record.target : record.task;
      names[held_out[group]].insert(groups[group].name);
      HONE_RETURN_IF_ERROR(copies[held_out[group]].Add(record));
    }
  }
  if (parts[0].added() == 0 || parts[1].added() == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "every ", options.by, " would be in the ", parts[0].added() == 0 ? "test" : "training",
        " part; use another --seed or another share, or split by something else"));
  }
  return SplitReport{parts[0].added(), parts[1].added(), static_cast<int64_t>(names[0].size()),
                     static_cast<int64_t>(names[1].size())};
}

}  // namespace hone::cli

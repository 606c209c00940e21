#include "server/job/search/task_rows.h"

#include <map>
#include <memory>

#include "common/base/status_macros.h"

namespace hone::job {
namespace {

constexpr int kCandidatesBetweenPauses = 32;

// Opens the spaces of one task, each once. Find returns null if a space cannot be opened.
class OpenSpaces {
 public:
  OpenSpaces(const TaskEnvironment& environment, store::Store& store, const std::string& target)
      : environment_(environment), store_(store), target_(target) {}

  const TaskSpaces* Find(const std::string& digest) {
    auto found = spaces_.find(digest);
    if (found == spaces_.end()) found = spaces_.emplace(digest, Open(digest)).first;
    return found->second.get();
  }

 private:
  std::unique_ptr<TaskSpaces> Open(const std::string& digest) const {
    const absl::StatusOr<std::string> text = store_.GetText(digest);
    if (!text.ok()) return nullptr;
    absl::StatusOr<std::unique_ptr<TaskSpaces>> space = environment_.OpenKept(*text, target_);
    return space.ok() ? *std::move(space) : nullptr;
  }

  const TaskEnvironment& environment_;
  store::Store& store_;
  const std::string& target_;
  std::map<std::string, std::unique_ptr<TaskSpaces>> spaces_;
};

}  // namespace

absl::StatusOr<std::vector<TaskRows>> ExtractRows(const TaskEnvironment& environment,
                                                  store::Store& store,
                                                  absl::Span<const RecordedTask> tasks,
                                                  const std::string& feature_set,
                                                  const std::function<absl::Status()>& pause) {
  std::vector<TaskRows> all;
  int since_pause = 0;
  for (const RecordedTask& task : tasks) {
    TaskRows rows{.workload_digest = task.workload_digest, .op = task.op};
    OpenSpaces spaces(environment, store, task.target);
    for (const RecordedCandidate& each : task.candidates) {
      if (++since_pause == kCandidatesBetweenPauses) {
        HONE_RETURN_IF_ERROR(pause());
        since_pause = 0;
      }
      if (feature_set.empty()) {
        rows.features.Append({}, 0);
      } else {
        const TaskSpaces* space = spaces.Find(each.candidate.space_digest);
        const absl::Status status =
            space == nullptr
                ? absl::FailedPreconditionError("unknown space")
                : space->AppendFeatures(feature_set,
                                        {space->spaces()[0].digest, each.candidate.decisions},
                                        &rows.features);
        if (absl::IsNotFound(status)) return status;
        if (!status.ok()) {
          ++rows.left_out;
          continue;
        }
      }
      rows.latency_ns.push_back(each.latency_ns);
      if (each.latency_ns > 0 && (rows.best_ns == 0 || each.latency_ns < rows.best_ns)) {
        rows.best_ns = each.latency_ns;
      }
    }
    all.push_back(std::move(rows));
  }
  return all;
}

void LabelledRows::Add(const TaskRows& task, int i) {
  const auto columns = static_cast<size_t>(task.features.columns);
  const size_t begin = task.features.row_begin[i], end = task.features.row_begin[i + 1];
  features.columns = task.features.columns;
  features.Append(
      absl::MakeConstSpan(task.features.values).subspan(begin * columns, (end - begin) * columns),
      static_cast<int>(end - begin));
  throughput.push_back(task.Throughput(i));
}

}  // namespace hone::job

#include "server/job/search/nearest.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/tuner/space/transfer.h"

namespace hone::job {
namespace {

constexpr int kRecordsPerPage = 1000;
constexpr int kTries = 8;  // maximum number of sources to adapt

struct Source {
  record::Record record;
  std::string workload;
  double distance = 0;
};

absl::StatusOr<std::vector<Source>> FindSources(store::Store& store,
                                                const TaskEnvironment& environment,
                                                const WorkloadInfo& workload,
                                                const std::string& target_key, double tolerance) {
  std::vector<Source> sources;
  for (const bool published : {true, false}) {
    store::RecordQuery query{.target = target_key,
                             .op = workload.op,
                             .best_only = published,
                             .unpublished_best = !published,
                             .page_size = kRecordsPerPage};
    while (true) {
      HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store.Query(query));
      for (const record::Record& record : page) {
        query.after_id = record.id;
        if (record.tolerance != tolerance || record.quarantined) continue;
        HONE_ASSIGN_OR_RETURN(std::string text, store.GetText(record.workload_digest));
        const double distance = environment.Distance(workload.text, text);
        if (distance < space::kOtherForm) sources.push_back({record, std::move(text), distance});
      }
      if (static_cast<int>(page.size()) < kRecordsPerPage) break;
    }
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.distance < b.distance; });
  return sources;
}

// Adapts a candidate to these spaces. Also returns the text of its space.
absl::StatusOr<NearestBest> AdaptIn(const TaskSpaces& spaces, const std::string& space,
                                    const std::vector<int64_t>& decisions) {
  NearestBest nearest;
  HONE_ASSIGN_OR_RETURN(nearest.candidate, spaces.Adapt(space, decisions));
  for (const SpaceInfo& info : spaces.spaces()) {
    if (info.digest == nearest.candidate.space_digest) nearest.space = info.text;
  }
  return nearest;
}

}  // namespace

absl::StatusOr<NearestBest> FindNearest(store::Store& store, const TaskEnvironment& environment,
                                        const WorkloadInfo& workload, const std::string& target_key,
                                        const std::string& target_text, double tolerance) {
  HONE_ASSIGN_OR_RETURN(std::vector<Source> sources,
                        FindSources(store, environment, workload, target_key, tolerance));
  const absl::Status none = absl::NotFoundError(
      absl::StrCat("no best of any ", workload.op, " of the same form is known on ", target_key));
  if (sources.empty()) return none;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSpaces> rules,
                        environment.Open(workload.text, target_text, "", tolerance));
  int tries = 0;
  for (Source& source : sources) {
    if (++tries > kTries) break;
    HONE_ASSIGN_OR_RETURN(std::string space, store.GetText(source.record.candidate.space_digest));
    const std::vector<int64_t>& decisions = source.record.candidate.decisions;
    absl::StatusOr<NearestBest> nearest = AdaptIn(*rules, space, decisions);
    if (!nearest.ok()) {
      // No rule makes this trace; it was, for example, written by hand. It is used without a design
      // space.
      const auto transplanted = environment.Transplant(workload.text, space);
      if (!transplanted.ok()) continue;
      const auto given = environment.Open(workload.text, target_text, *transplanted, tolerance);
      if (!given.ok()) continue;
      nearest = AdaptIn(**given, space, decisions);
    }
    if (!nearest.ok()) continue;
    nearest->distance = source.distance;
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, environment.Describe(source.workload));
    nearest->flops = info.flops;
    nearest->source = {std::move(source.record), std::move(source.workload), std::move(space)};
    return nearest;
  }
  return none;
}

}  // namespace hone::job

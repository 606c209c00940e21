// What the store knows when the search of a job begins or continues.

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/search/search_phase.h"
#include "server/job/search/task_search.h"

namespace hone::job {

search::Measured MeasuredOf(const record::Record& record) {
  return {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)};
}

absl::StatusOr<EarlierResults> ReadEarlierResults(const JobActor& job, const JobTask& task,
                                                  int64_t up_to_record) {
  const JobSpec& spec = job.spec();
  EarlierResults earlier;
  std::set<Digest> seen;
  store::RecordQuery query{
      .workload_digest = task.workload().digest, .target = spec.target_key, .page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page,
                          job.services().store->Query(query));
    for (const record::Record& record : page) {
      query.after_id = record.id;
      if (record.tolerance != spec.tolerance) continue;
      // A job keeps its own results, also if the inputs that workers make have changed since.
      if (record.job_id != job.id() && !task.HasSameInputs(record)) continue;
      earlier.default_schedule.Add(record);
      if (record.policy.name != "screen") {
        const bool counts = record.job_id == job.id() && !record.quarantined &&
                            record.result.outcome == record::Outcome::kOk &&
                            record.result.processes == 0;
        if (counts) earlier.again.push_back(record);
        continue;
      }
      if (record.job_id == job.id()) {
        earlier.own.emplace(record.trial, record);
        continue;
      }
      if (record.quarantined) continue;
      if (!task.spaces().IsSearched(record.candidate)) {
        if (!record.proposer.empty()) earlier.foreign.push_back(record.candidate);
        continue;
      }
      if (up_to_record >= 0 && record.id > up_to_record) continue;
      if (task.IsOnly(record.candidate)) continue;  // otherwise it would not be measured again
      earlier.last_record = std::max(earlier.last_record, record.id);
      if (!seen.insert(CandidateDigest(record.candidate)).second) continue;
      earlier.prior.push_back(MeasuredOf(record));
    }
    if (static_cast<int>(page.size()) < query.page_size) break;
  }
  // A confirmation also measures the published best, which another job may have found.
  std::erase_if(earlier.again, [&](const record::Record& record) {
    const auto own = earlier.own.find(record.trial);
    return own == earlier.own.end() || own->second.candidate != record.candidate;
  });
  return earlier;
}

}  // namespace hone::job

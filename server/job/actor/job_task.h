#ifndef HONE_SERVER_JOB_ACTOR_JOB_TASK_H_
#define HONE_SERVER_JOB_ACTOR_JOB_TASK_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

// Returns why a measurement cannot be trusted because the machine was disturbed; "" if it can be
// trusted. Untrusted records are stored but quarantined with this reason. They are told to the
// search of their own job, but nothing else learns from them, and they are not published.
//
// The limits are wide for screening, which only sorts, and strict for confirmations. They apply to
// the drift of the machine since its registration, stolen time, thermal throttling and, for
// confirmations, the dispersion of the samples and their median over the fastest. Load by other
// processes alone is not a reason, because its effects show in these values.
//
// `earlier_ns` is the steady latency of the same candidate in an earlier process; 0: unknown. A
// confirmation that is many times as slow was disturbed from its first sample to the last. One that
// agrees with the earlier process has wider limits of drift and steal.
std::string WhyOutOfPolicy(const record::Record& record, double earlier_ns = 0);

// The workload of a job and its design spaces. Submits candidates to the fleet and stores their
// results. Belongs to the job's strand.
class JobTask {
 public:
  explicit JobTask(JobActor& job) : job_(job) {}

  // Opens the design spaces and stores their texts. `check`: see TaskEnvironment::Open. The task
  // keeps it.
  absl::Status Open(StopCheck check);

  const WorkloadInfo& workload() const { return workload_; }
  const TaskSpaces& spaces() const { return *spaces_; }
  std::shared_ptr<TaskSpaces> shared_spaces() const { return spaces_; }
  // Whether the job's space has only one candidate. It is always measured completely, even if it is
  // slow, and is always a finalist.
  bool IsDecided() const { return only_.has_value(); }
  bool IsOnly(const record::Candidate& candidate) const { return only_ == candidate; }
  // Returns the text of a space; "" if it is not a space of this job.
  std::string SpaceText(const std::string& digest) const;
  // Adds a space of candidates that another program proposes, and stores its text. Does nothing if
  // the task has it.
  void AddSpace(const std::string& digest, const std::string& text);
  // The size of the texts that AddSpace has added.
  size_t added_bytes() const { return added_bytes_; }
  // Notes which program proposed a trial, for its records.
  void SetProposer(int64_t trial, const std::string& name) { proposers_[trial] = name; }

  // Whether a record was measured on the inputs of this job. Latencies on others are not compared
  // with those of this job.
  bool HasSameInputs(const record::Record& record) const;

  // The best latency so far. Items of the search have it, so that candidates that are much slower
  // are stopped early.
  std::shared_ptr<const std::atomic<double>> best_latency() const { return best_latency_; }
  void LowerBestLatency(double latency_ns);

  // Return a work item and a record with the fields that are common to all submissions.
  fleet::WorkItem MakeItem(const record::Candidate& candidate, const std::string& space) const;
  record::Record MakeRecord(const record::Candidate& candidate, int64_t trial) const;
  // Returns the published best; see Store::LookupBest.
  absl::StatusOr<store::BestRow> PublishedBest() const;
  // Returns a record as clients see it. `pin`: of the published best.
  Best MakeBest(const record::Record& record, const store::Pin& pin = {}) const;

  // Has the fleet measure an item. Its result is stored under `record`, acknowledged, and then
  // passed to `on_record` with the worker that measured it. `on_error` gets the fleet's error.
  // `earlier_ns`: see WhyOutOfPolicy.
  using OnRecord = absl::AnyInvocable<void(const record::Record&, const std::string& worker) &&>;
  using OnError = absl::AnyInvocable<void(const absl::Status&) &&>;
  void Measure(fleet::WorkItem item, record::Record record, int64_t event, double earlier_ns,
               OnRecord on_record, OnError on_error);
  // Quarantines the stored records of a candidate, up to a record.
  void Quarantine(const record::Candidate& candidate, int64_t last_record, const std::string& why);

 private:
  class Measurement;
  void Keep(const std::string& digest, const std::string& text);
  void RaisePeaks(double gflops, double read_gbps);

  JobActor& job_;
  WorkloadInfo workload_;
  std::shared_ptr<TaskSpaces> spaces_;
  std::map<std::string, std::string> space_texts_;
  size_t added_bytes_ = 0;
  std::map<int64_t, std::string> proposers_;  // by trial
  std::optional<record::Candidate> only_;
  std::shared_ptr<std::atomic<double>> best_latency_ = std::make_shared<std::atomic<double>>(0);
  // The largest of the workers that have measured for this job, also under earlier servers.
  double peak_gflops_ = 0;
  double read_gbps_ = 0;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_TASK_H_

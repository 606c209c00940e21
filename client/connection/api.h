#ifndef HONE_CLIENT_CONNECTION_API_H_
#define HONE_CLIENT_CONNECTION_API_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/disturbed.h"
#include "common/record/processes.h"
#include "common/record/record.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"

// Plain structs for requests and answers. They mirror proto/hone/v1/tuning.proto, which explains
// each field.
namespace hone::client {

// The description of a tuning job.
struct JobSpec {
  std::string workload;     // text form
  std::string target;       // key, or "native" for the only target of the server's workers
  int64_t max_trials = 0;   // 0: no limit; at least one of the two limits is set
  int64_t max_time_ms = 0;  // including the confirmation; 0: no limit
  uint64_t seed = 0;
  std::string strategy;     // "": the server's default
  std::string cost_model;   // "": the server's default
  double tolerance = 0;     // 0: strict
  std::string feature_set;  // for the cost model; "": the model's own
  bool transfer = false;    // start from results and models of other workloads of the target
  // The text of a trace file that defines the design space, or the name of a space maker; "": the
  // rules.
  std::string space;
  bool unpublished = false;  // end with the best of the search, without confirming it
  int revalidate = 0;        // not 0: confirm this many stored candidates again, without a search
  std::string priority;      // "low", "normal" (also "") or "high"
  // Replaces `workload`: the digest of a workload in the server's store.
  std::string workload_digest;
  // If not "", measure on data that Connection::UploadInputs sent, not on seeded inputs.
  std::string inputs_digest;
};

// A task of networks: a workload, and how often it occurs in each network.
struct NetworkTask {
  std::string workload;         // text form; each workload at most once
  std::vector<double> weights;  // at least one is positive
};

struct Network {
  std::string name;
  double latency_limit_ns = 0;  // for the objective "latency-limits"
  double reference_ns = 0;      // for the objective "speedup"
};

// The description of a job of networks, whose tasks share its trials.
struct NetworkSpec {
  std::string name;
  std::vector<NetworkTask> tasks;
  std::vector<Network> networks;  // may be empty for one network
  std::string objective;          // "": the sum of the networks' latencies
  std::string scheduler;          // "": the server's default
  int64_t patience = 0;           // end after this many trials without improvement; 0: no limit
  int64_t early_stop = 0;         // trials of a task, for the objective "early-stop"
  bool only_missing = false;      // give trials only to tasks without a published best
};

// The state of a task of networks.
struct NetworkTaskProgress {
  std::string workload;
  std::string workload_digest;
  std::string op;
  std::vector<double> weights;
  std::string job;    // the job that tunes it; "": it has had no trials
  std::string state;  // the state of that job, as JobStateName writes it; "": there is no job
  int64_t trials = 0;
  double seconds = 0;             // spent on the trials
  double latency_ns = 0;          // best so far, also from earlier jobs; 0: unknown
  double default_latency_ns = 0;  // confirmed, perhaps by an earlier job; 0: unknown
  bool confirmed = false;         // latency_ns is that of the published best
  bool disturbed = false;         // other work disturbed every process that measured that best
  double gflops = 0;
  double peak_gflops = 0;  // 0: unknown
  std::string error;
};

struct NetworkEstimate {
  int64_t wall_ms = 0;
  int64_t trials = 0;
  double latency_ns = 0;
};

// The state of a job of networks. Connection::ListJobs returns it without tasks and estimates.
struct NetworkProgress {
  std::string name;
  int task_count = 0;
  double latency_ns = 0;          // sum of the tasks by weight; 0: not known for all of them
  double default_latency_ns = 0;  // the same for the default schedules
  std::vector<NetworkTaskProgress> tasks;  // in the order of the request
  std::vector<NetworkEstimate> estimates;  // latency_ns over time
  // Whether the latencies of all tasks are confirmed; nullopt: the job has not begun.
  std::optional<bool> confirmed;
};

// A query for the best of a workload on a target; see Connection::LookupBest.
struct BestQuery {
  std::string workload;  // text form
  std::string target;    // key
  double tolerance = 0;
  bool nearest = false;
};

// What is tuned: one workload on one target.
struct Task {
  std::string workload_digest;
  std::string target;  // key
  double tolerance = 0;
};

// The measured best of another workload, from which an answer was adapted.
struct Nearest {
  std::string workload;  // text form
  double distance = 0;
  record::Record record;
  double gflops = 0;
};

// The best known schedule: its record, and what is needed to reproduce it.
struct Best {
  record::Record record;
  std::string workload;  // text form
  std::string trace;     // text form
  double gflops = 0;
  double peak_gflops = 0;      // 0: unknown
  double read_gbps = 0;        // 0: unknown
  int64_t pinned_unix_ms = 0;  // since when it is pinned; 0: it is not pinned
  std::string pinned_by;       // "": without authentication
  // Set if the schedule was adapted from another workload. Such a schedule was replayed, but
  // neither built nor measured.
  std::optional<Nearest> nearest;
};

// The latency that is shown everywhere: corrected for how fast the machine was when it was
// measured.
inline double LatencyNs(const Best& best) { return record::SteadyLatencyNs(best.record.result); }

enum class JobState {
  kPending = 1,
  kRunning = 2,
  kConfirming = 3,
  kDone = 4,
  kCancelled = 5,
  kFailed = 6
};
// "pending", "running", …
absl::string_view JobStateName(JobState state);
inline bool HasEnded(JobState state) { return state >= JobState::kDone; }

struct Job {
  std::string id;
  JobState state = JobState::kPending;
  std::string error;
  std::string workload;
  std::string workload_digest;
  std::string target;
  JobSpec spec;
  int64_t trials = 0;
  std::map<std::string, int64_t> outcomes;  // outcome name → trials
  int64_t dropped = 0;
  int64_t quarantined = 0;  // candidates that a revalidation found wrong
  int64_t created_unix_ms = 0;
  int64_t wall_ms = 0;
  int64_t after_cancel_ms = 0;  // the part of wall_ms that does not count against the limit
  absl::Duration left = absl::InfiniteDuration();  // until it should end; infinite: no limit
  std::string wait_reason;  // why its work waits for a worker, and what to do; "": it does not
  std::optional<Best> best;
  std::optional<Best> default_schedule;
  std::optional<Best> given;  // the result of the only candidate of a space without open decisions
  // The best of its own candidates. Differs from `best` if an earlier best stays published.
  std::optional<Best> own_best;
  int64_t disturbed = 0;    // measurements that were quarantined because of the machine
  std::string disturbance;  // the reason for the last of them
  int64_t queued = 0;
  std::string phase;
  std::string note;   // why it ended before its budget was used up
  std::string owner;  // name of the creator's token or certificate; "": without authentication
  std::optional<NetworkProgress> network;  // set if the job tunes networks; `workload` is then ""
};

// The reason for a report of a watched job.
enum class JobNews {
  kChanged,   // a new state
  kNone,      // time has passed
  kNoServer,  // the connection to the server is lost; the state is the last one before that
};

// Whether LookupBest can return the best of this job. A job confirms its finalists at its end, but
// not if it failed or was cancelled immediately, if other work disturbed every measurement of them,
// or if it publishes nothing. The best of a running job is the leader of its search, whose record
// is not stored.
inline bool BestIsConfirmed(const Job& job) {
  return job.best.has_value() && record::IsConfirmed(job.best->record);
}

// Whether the latency of a best is confirmed. Any other latency is marked with ~, because it may
// change. A published best is confirmed unless other work disturbed every process that measured it.
inline bool LatencyIsConfirmed(const Best& best) { return record::LatencyIsConfirmed(best.record); }
inline bool LatencyIsConfirmed(const NetworkTaskProgress& task) {
  return task.confirmed && !task.disturbed;
}
// The same for the sum of the tasks; nullopt if the tasks are unknown.
inline std::optional<bool> LatencyIsConfirmed(const NetworkProgress& network) {
  if (network.tasks.empty()) return network.confirmed;
  return std::all_of(network.tasks.begin(), network.tasks.end(),
                     [](const NetworkTaskProgress& task) { return LatencyIsConfirmed(task); });
}

// Whether the best of this job is known to have been quarantined since it was confirmed. (The best
// of a search may come from a measurement that other work disturbed. It is then quarantined from
// the start.)
inline bool BestIsWithdrawn(const Job& job) {
  return BestIsConfirmed(job) && job.best->record.quarantined;
}

// Whether another job found the best of this job: an earlier best stays published unless the best
// of the job's own candidates is significantly faster.
inline bool BestIsOfAnotherJob(const Job& job) {
  return job.best.has_value() && job.best->record.job_id != job.id;
}

// What this job has found, as far as it is known: the best of its own candidates or else its best.
inline const std::optional<Best>& BestFound(const Job& job) {
  return BestIsOfAnotherJob(job) && job.own_best.has_value() ? job.own_best : job.best;
}

// Whether the default schedule was measured in as many processes as a best, so that the speed-up is
// meaningful. If it is itself the best of the job, it is as confirmed as the best, which may have
// been measured in fewer processes.
inline bool DefaultIsConfirmed(const Job& job) {
  if (!job.default_schedule.has_value()) return false;
  const bool is_best = job.best.has_value() && record::IsConfirmed(job.best->record) &&
                       job.best->record.is_default && job.best->record.job_id == job.id;
  if (is_best) return LatencyIsConfirmed(*job.best);
  return record::ProcessesOf(job.default_schedule->record.result) >= record::kProcesses;
}

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_API_H_

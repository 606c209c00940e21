#ifndef HONE_SERVER_TASK_JOB_TYPES_H_
#define HONE_SERVER_TASK_JOB_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "server/task/network_types.h"
#include "server/task/risky_step.h"

namespace hone::task {

// The request of a client, validated and resolved. proto/hone/v1/tuning.proto explains the fields.
struct JobSpec {
  std::string request_id;
  std::string workload;          // text form
  std::string requested_target;  // as in the request
  std::string target_key;
  std::string target;  // text form
  int64_t max_trials = 0;
  absl::Duration max_time = absl::ZeroDuration();  // with the confirmation; zero: no limit
  uint64_t seed = 0;
  std::string strategy;    // never ""
  std::string cost_model;  // never ""
  double tolerance = 0;
  std::string feature_set;  // of the cost model; "": the model's default
  bool transfer = false;    // start from results of other workloads of the target
  // The text of a trace file that is the design space, or the name of a space; "": the rules.
  std::string space;
  int revalidate = 0;        // if not 0, confirm this many stored candidates without a search
  bool unpublished = false;  // do not confirm or publish the best
  std::string owner;         // the caller's name; "" if callers are not authenticated
  std::string priority = "normal";  // "low", "normal" or "high"
  // For a child: the id of its job of networks; otherwise "". Lists do not show children.
  std::string parent;
  std::optional<NetworkSpec> network;  // set if the job tunes networks; `workload` is then ""

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Returns the priority of a job's work items (server/fleet/fair_share.h).
int PriorityOf(absl::string_view name);

enum class JobState { kPending, kRunning, kConfirming, kDone, kCancelled, kFailed };

// Returns "pending", "running", …, as in store::JobRow.
absl::string_view JobStateName(JobState state);
// InvalidArgument: unknown name.
absl::StatusOr<JobState> JobStateFromName(absl::string_view name);
// Returns whether a job is done, cancelled or failed.
bool HasEnded(JobState state);

// A measured candidate with what a client needs to show it.
struct Best {
  record::Record record;
  std::string workload;        // text form
  std::string trace;           // text form with decisions
  double gflops = 0;           // by the workload's formula and the steady latency
  double peak_gflops = 0;      // FMA peak of the device when it registered; 0: unknown
  double read_gbps = 0;        // memory bandwidth of the device; 0: unknown
  std::string pinned_by;       // who pinned it, see store::Pin
  int64_t pinned_unix_ms = 0;  // when; 0: it is not pinned
};

// Returns the figures of a record, for a workload with `flops` operations and a device that had
// `peak_gflops` when it registered. The texts stay empty.
Best BestOf(const record::Record& record, double flops, double peak_gflops);

// A job as clients see it.
struct JobSnapshot {
  std::string id;
  JobSpec spec;
  JobState state = JobState::kPending;
  bool cancelled = false;  // the job confirms its finalists and ends, even after a restart
  std::string error;       // why it failed
  std::string workload_digest;
  int64_t trials = 0;
  std::map<record::Outcome, int64_t> outcomes;
  int64_t dropped = 0;
  int64_t created_unix_ms = 0;
  absl::Duration wall = absl::ZeroDuration();  // working time, without the server's downtime
  // Until it should end, when this was published; infinite without a limit. Not stored.
  absl::Duration left = absl::InfiniteDuration();
  // Why no worker takes its work, and what to do, as text for users; "" if one does. Not stored.
  std::string wait_reason;
  std::optional<Best> best;
  std::optional<Best> default_schedule;
  std::optional<Best> given;  // the result of the only candidate of a decided space
  // The best of the job's own candidates. It differs from `best` if an earlier best stays
  // published.
  std::optional<Best> own_best;
  int64_t quarantined = 0;  // candidates that a revalidation found wrong
  int64_t disturbed = 0;    // measurements quarantined because the machine was disturbed
  std::string disturbance;  // the reason of the last one
  int64_t queued = 0;
  std::string phase;    // what it does or waits for, as text for users
  std::string note;     // why it ended early, as text for users
  int64_t version = 0;  // increases with every change
  int64_t fence = 0;    // of this server's claim, see store::JobRow
  // The risky step that was in progress when this was stored; nullopt between such steps.
  std::optional<RiskyStep> risky_step;
  // How often a server has crashed in a risky step of this job. Reset to 0 at an orderly shutdown,
  // and when the job ends.
  int crashes = 0;
  // For a child: how many candidates it may propose, and how many of these it has not proposed or
  // not measured yet. The latter is not stored.
  int64_t allowance = 0;
  int64_t unmeasured = 0;
  std::optional<NetworkState> network;  // set if the job tunes networks
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_TYPES_H_

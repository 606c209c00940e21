#ifndef HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_
#define HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "server/job/actor/network_types.h"
#include "server/job/actor/risky_step.h"

namespace hone::job {

// A client's request after validation. proto/hone/v1/tuning.proto explains the fields.
struct JobSpec {
  std::string request_id;
  std::string workload;          // text form
  std::string requested_target;  // as in the request
  std::string target_key;
  std::string target;  // text form
  int64_t max_trials = 0;
  absl::Duration max_time = absl::ZeroDuration();  // includes the confirmation; zero: no limit
  uint64_t seed = 0;
  std::string strategy;    // never ""
  std::string cost_model;  // never ""
  double tolerance = 0;
  std::string feature_set;  // that the cost model reads; "": its default
  bool transfer = false;    // start from results of other workloads on the target
  // What makes the design spaces: the text of a trace file, or the name of a maker; "": the rules.
  std::string space;
  int revalidate = 0;         // if not 0, confirm this many stored candidates without a search
  bool unpublished = false;   // do not confirm or publish the best; if revalidate, only measure
  std::string inputs_digest;  // of the data of a user to measure on; "": seeded inputs
  std::string owner;          // the caller's name; "" if callers are not authenticated
  std::string priority = "normal";  // "low", "normal" or "high"
  // If this job is a child: the id of its parent, a job of networks; otherwise "". Lists do not
  // show children.
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
  double gflops = 0;           // the workload's operations divided by the steady latency
  double peak_gflops = 0;      // FMA peak of the device; 0: unknown, or not a limit of the workload
  double read_gbps = 0;        // memory bandwidth of the device; 0: unknown
  std::string pinned_by;       // who pinned it, see store::Pin
  int64_t pinned_unix_ms = 0;  // when it was pinned; 0: it is not pinned
};

// Returns a Best with the record, `gflops` and `peak_gflops`; the caller sets the other fields.
// `flops` is the workload's number of operations, and `peak_gflops` the device's peak when it
// registered, or 0. Kernels may exceed it: the clock varies, and some algorithms need fewer
// operations.
Best BestOf(const record::Record& record, double flops, double peak_gflops);

// A job as clients see it.
struct JobSnapshot {
  std::string id;
  JobSpec spec;
  JobState state = JobState::kPending;
  // A user cancelled the job. It confirms its finalists and ends, even after a restart.
  bool cancelled = false;
  std::string error;  // why it failed
  // It failed for a reason outside of it, such as a missing worker or a full disk.
  bool is_resumable = false;
  std::string workload_digest;
  int64_t trials = 0;
  std::map<record::Outcome, int64_t> outcomes;
  int64_t dropped = 0;  // candidates that were proposed but not timed
  int64_t created_unix_ms = 0;
  absl::Duration wall = absl::ZeroDuration();  // working time, without the server's downtime
  // The part of `wall` in which the cancelled job confirmed its finalists. It does not count
  // against the time limit: a job that is resumed has the rest of its time for its search.
  absl::Duration after_cancel = absl::ZeroDuration();
  absl::Duration CountedWall() const { return wall - after_cancel; }
  // The time that was left until the job should end, when this snapshot was published; infinite
  // without a limit. Not stored.
  absl::Duration left = absl::InfiniteDuration();
  // Why the job's work waits for a worker, and what users can do about it, as text for them; "" if
  // it does not. Not stored.
  std::string wait_reason;
  std::optional<Best> best;
  std::optional<Best> default_schedule;
  // The result of the only candidate, if the design space is a trace with all of its decisions.
  std::optional<Best> given;
  // The best of the job's own candidates. It differs from `best` if an earlier best stays
  // published.
  std::optional<Best> own_best;
  int64_t quarantined = 0;  // candidates that a revalidation found wrong
  int64_t disturbed = 0;    // measurements quarantined because the machine was disturbed
  std::string disturbance;  // how the last of them was disturbed
  int64_t queued = 0;       // candidates that wait for their results
  std::string phase;        // what the job does or waits for, as text for users
  std::string note;         // why it ended early, as text for users
  int64_t version = 0;      // increases with every change
  int64_t fence = 0;        // of this server's claim on the job, see store::JobRow
  // The risky step that was in progress when this was stored; nullopt between such steps.
  std::optional<RiskyStep> risky_step;
  // How often a server has crashed in a risky step of this job. Reset to 0 at an orderly shutdown,
  // and when the job ends.
  int crashes = 0;
  // For a child: the number of candidates that it may propose, and the number of these that have no
  // result yet, whether or not they were proposed. The second number is not stored.
  int64_t allowance = 0;
  int64_t unmeasured = 0;
  std::optional<NetworkState> network;  // set if the job tunes networks
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_

#ifndef HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_
#define HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/fields.h"
#include "common/record/record.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {

// A step of a job that runs a lot of code on user input, in which a defect may crash the server:
// making the design spaces, or proposing candidates. It is stored with the job before it begins and
// removed when it ends. If a server takes over a job with a stored step, it assumes that an earlier
// server crashed during this step.
struct RiskyStep {
  std::string name;    // "making the design spaces"
  std::string server;  // the run of the server: "host/…"
  std::string boot;    // boot ID of its machine; "": unknown

  friend bool operator==(const RiskyStep&, const RiskyStep&) = default;
};

// The names of the steps, for messages: "the server ended while making the design spaces".
inline constexpr char kMakingSpaces[] = "making the design spaces";
inline constexpr char kProposing[] = "proposing candidates";

// Returns the boot ID of this machine; "" if the system does not provide one.
std::string ThisBoot();

// Returns whether a server probably crashed in the step. `server` is the run that found the step.
// Returns false if the machine has been restarted since, or if the step belongs to the process of
// `server`, which led before and did not crash.
bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot);

// The request and the state of a job of networks. proto/hone/v1/tuning.proto explains the fields.
struct NetworkTaskSpec {
  std::string workload;  // text form, different in each task
  std::vector<double> weights;
  friend bool operator==(const NetworkTaskSpec&, const NetworkTaskSpec&) = default;
};

struct NetworkSpec {
  std::string name;
  std::vector<NetworkTaskSpec> tasks;  // never empty
  std::vector<std::string> network_names;
  std::string objective;  // never ""
  std::vector<double> limits_ns, references_ns;
  std::vector<double> network_weights;  // in the mean of the objective "speedup"; empty: all are 1
  std::string scheduler;                // never ""
  int64_t patience = 0;                 // 0: no limit
  int64_t early_stop = 0;               // trials of a task, for the objective "early-stop"
  bool only_missing = false;
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

// A task as the job of networks stores it, so that it can be shown without the task's own job.
struct NetworkTaskState {
  std::string workload_digest;
  std::string op;
  double flops = 0;
  int64_t granted = 0;  // trials that its job was allowed
  int64_t trials = 0;   // measured
  int64_t earlier_trials = 0;
  double known_latency_ns = 0;    // of the best that was published before; 0: none
  double latency_ns = 0;          // best so far; 0: none
  double default_latency_ns = 0;  // confirmed, also by earlier jobs; 0: unknown
  double gflops = 0;
  double peak_gflops = 0;
  double seconds = 0;
  bool confirmed = false;  // latency_ns is of a published best
  bool disturbed = false;  // record::IsOnlyDisturbed of that best
  bool closed = false;     // gets no more trials
  std::string state;       // of its job (JobStateName); "": it has none
  std::string error;
  std::vector<ProgressPoint> curve;
};

// The total latency of all networks at some point of the job.
struct NetworkEstimate {
  int64_t wall_ms = 0;
  int64_t trials = 0;
  double latency_ns = 0;
  friend bool operator==(const NetworkEstimate&, const NetworkEstimate&) = default;
};

struct NetworkState {
  std::vector<NetworkTaskState> tasks;  // in the order of the request; empty until the job begins
  std::vector<NetworkEstimate> estimates;
};

// Returns what a scheduler needs to know. REQUIRES: the state has the tasks of the request.
std::vector<TaskProgress> ProgressOf(const NetworkSpec& spec, const NetworkState& state);
Objective ObjectiveOf(const NetworkSpec& spec);
// Return the weighted sum of the tasks' latencies over all networks; 0 if a latency is unknown.
double NetworkLatency(const NetworkSpec& spec, const NetworkState& state);
double DefaultNetworkLatency(const NetworkSpec& spec, const NetworkState& state);

// Returns the id of the job that tunes a task: "4711.3" is task 3 of job 4711.
std::string TaskJobId(absl::string_view network_job, size_t task);
inline bool IsTaskJobId(absl::string_view id) { return id.find('.') != absl::string_view::npos; }

// The strategy of a job that proposes nothing itself and only measures what other programs propose.
inline constexpr char kExternalStrategy[] = "external";

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
  std::string strategy;    // never ""; may be kExternalStrategy
  std::string cost_model;  // never ""
  double tolerance = 0;
  std::string feature_set;  // that the cost model reads; "": its default
  int64_t draft_model = 0;  // the stored draft that the search uses, by its row; 0: none
  // What makes the design spaces: the text of a trace file, or the name of a maker; "": the rules.
  std::string space;
  int revalidate = 0;         // if not 0, confirm this many stored candidates without a search
  bool unpublished = false;   // do not confirm or publish the best; if revalidate, only measure
  bool is_check = false;      // `space` is a trace with all of its decisions
  std::string inputs_digest;  // of the data of a user to measure on; "": seeded inputs
  std::string owner;          // the caller's name; "" if callers are not authenticated
  std::string priority = "normal";  // "low", "normal" or "high"
  // If this job is a child: the id of its parent, a job of networks; otherwise "". Lists do not
  // show children.
  std::string parent;
  std::optional<NetworkSpec> network;  // set if the job tunes networks; `workload` is then ""

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Returns the priority of a job's work items (server/fleet/lease_book.h).
int PriorityOf(absl::string_view name);

// The numbers are those of v1::JobState.
enum class JobState { kPending = 1, kRunning, kConfirming, kDone, kCancelled, kFailed };

// Returns "pending", "running", …, as in store::JobRow.
absl::string_view JobStateName(JobState state);
// InvalidArgument: unknown name.
absl::StatusOr<JobState> JobStateFromName(absl::string_view name);
// Returns whether a job is done, cancelled or failed.
bool HasEnded(JobState state);

// The kinds of JobPhase, with the numbers and meanings of v1::JobPhase::Kind.
enum class PhaseKind {
  kNone,
  kMakingSpaces,
  kRestoring,
  kWaitingForTurn,
  kWaitingForResult,
  kWaitingForCapacity,
  kMeasuringFirstAgain,
  kMeasuringWithout,
  kFinishing,
  kConfirming,
  kBuildingStored,
  kRound,
  kWaitingForQuiet,
  kTasksConfirmed,
  kWaitingForArtifact,
  kCheckingWinner,
  kWaitingForKernel,
  kWaitingForProposals = 19,
  kWaitingForSpace,
};

// What a job does or waits for. tuning.proto explains the fields.
struct JobPhase {
  PhaseKind kind = PhaseKind::kNone;
  std::string detail;
  int64_t done = 0;
  int64_t whole = 0;
  int round = 0;
  bool cancelling = false;

  friend bool operator==(const JobPhase&, const JobPhase&) = default;
};

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

// What came of the schedules that a program proposed for a job.
struct ProposerState {
  int64_t accepted = 0;
  int64_t measured = 0;
  double latency_ns = 0;  // steady, of the fastest as the search measured it; 0: none ran
  friend bool operator==(const ProposerState&, const ProposerState&) = default;
};

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
  int64_t quarantined = 0;   // candidates that a revalidation found wrong
  int64_t disturbed = 0;     // measurements quarantined because the machine was disturbed
  std::string disturbance;   // how the last of them was disturbed
  int64_t queued = 0;        // candidates that wait for their results
  JobPhase phase;            // kNone once the job has ended
  std::string note;          // why it ended early, as text for users
  bool unconfirmed = false;  // no candidate could be confirmed; the note says why
  int64_t version = 0;       // increases with every change
  // The risky step that was in progress when this was stored; nullopt between such steps.
  std::optional<RiskyStep> risky_step;
  // The runs of the servers that have crashed in a risky step of this job. Cleared at an orderly
  // shutdown, and when the job ends.
  std::vector<std::string> crashed_servers;
  // For a child: the number of candidates that it may propose, and the number of these that have no
  // result yet, whether or not they were proposed. The second number is not stored.
  int64_t allowance = 0;
  int64_t unmeasured = 0;
  std::optional<NetworkState> network;             // set if the job tunes networks
  std::map<std::string, ProposerState> proposers;  // by name
};

// Returns how many crashes count against a job. A server that was cut off from the database looks
// like one that crashed; so if servers of several machines did, one of them is not counted.
int CountedCrashes(const JobSnapshot& job);

// Makes a job that has ended pending again, without what its end said.
void Reopen(JobSnapshot& job);

// The descriptions of the structs, as in common/record/fields.h, by which they are stored
// (job_codec.h) and shown to clients (server/service/job_convert.h).
template <record::Is<JobSpec> S, typename Visit>
void VisitFields(S& spec, Visit& visit) {
  visit({.proto = "request_id"}, spec.request_id);
  visit({.proto = "workload"}, spec.workload);
  visit({.proto = "requested_target"}, spec.requested_target);
  visit({.proto = "target_key"}, spec.target_key);
  visit({.proto = "target"}, spec.target);
  visit({.proto = "max_trials"}, spec.max_trials);
  visit({.proto = "max_time_ms"}, spec.max_time);
  visit({.proto = "seed"}, spec.seed);
  visit({.proto = "strategy"}, spec.strategy);
  visit({.proto = "cost_model"}, spec.cost_model);
  visit({.proto = "tolerance"}, spec.tolerance);
  visit({.proto = "feature_set"}, spec.feature_set);
  visit({.proto = "draft_model"}, spec.draft_model);
  visit({.proto = "space"}, spec.space);
  visit({.proto = "revalidate"}, spec.revalidate);
  visit({.proto = "owner"}, spec.owner);
  visit({.proto = "priority"}, spec.priority);
  visit({.proto = "unpublished"}, spec.unpublished);
  visit({.proto = "parent"}, spec.parent);
  visit({.proto = "inputs_digest"}, spec.inputs_digest);
  visit({.proto = "is_check"}, spec.is_check);
  visit({.proto = "network"}, spec.network);
}

template <record::Is<Best> B, typename Visit>
void VisitFields(B& best, Visit& visit) {
  visit({.proto = "record"}, best.record);
  visit({.proto = "workload"}, best.workload);
  visit({.proto = "trace"}, best.trace);
  visit({.proto = "gflops"}, best.gflops);
  visit({.proto = "peak_gflops"}, best.peak_gflops);
  visit({.proto = "read_gbps"}, best.read_gbps);
  visit({.proto = "pinned_by"}, best.pinned_by);
  visit({.proto = "pinned_unix_ms"}, best.pinned_unix_ms);
}

// All fields except the kind.
template <record::Is<JobPhase> P, typename Visit>
void VisitFields(P& phase, Visit& visit) {
  visit({.proto = "detail"}, phase.detail);
  visit({.proto = "done"}, phase.done);
  visit({.proto = "whole"}, phase.whole);
  visit({.proto = "round"}, phase.round);
  visit({.proto = "cancelling"}, phase.cancelling);
}

// All fields except the state, the outcomes and the networks.
template <record::Is<JobSnapshot> S, typename Visit>
void VisitFields(S& snapshot, Visit& visit) {
  visit({.proto = "id"}, snapshot.id);
  visit({.proto = "cancelled"}, snapshot.cancelled);
  visit({.proto = "error"}, snapshot.error);
  visit({.proto = "workload_digest"}, snapshot.workload_digest);
  visit({.proto = "trials"}, snapshot.trials);
  visit({.proto = "dropped"}, snapshot.dropped);
  visit({.proto = "quarantined"}, snapshot.quarantined);
  visit({.proto = "created_unix_ms"}, snapshot.created_unix_ms);
  visit({.proto = "wall_ms"}, snapshot.wall);
  visit({.proto = "phase"}, snapshot.phase);
  visit({.proto = "note"}, snapshot.note);
  visit({.proto = "unconfirmed"}, snapshot.unconfirmed);
  visit({.proto = "changes"}, snapshot.version);
  visit({.proto = "best"}, snapshot.best);
  visit({.proto = "default_schedule"}, snapshot.default_schedule);
  visit({.proto = "given"}, snapshot.given);
  visit({.proto = "crashed_servers"}, snapshot.crashed_servers);
  visit({.proto = "risky_step"}, snapshot.risky_step);
  visit({.proto = "own_best"}, snapshot.own_best);
  visit({.proto = "disturbed"}, snapshot.disturbed);
  visit({.proto = "disturbance"}, snapshot.disturbance);
  visit({.proto = "allowance"}, snapshot.allowance);
  visit({.proto = "cancelled_ms"}, snapshot.after_cancel);
  visit({.proto = "is_resumable"}, snapshot.is_resumable);
}

template <record::Is<NetworkSpec> S, typename Visit>
void VisitFields(S& spec, Visit& visit) {
  visit({.proto = "name"}, spec.name);
  visit({.proto = "objective"}, spec.objective);
  visit({.proto = "scheduler"}, spec.scheduler);
  visit({.proto = "patience"}, spec.patience);
  visit({.proto = "early_stop"}, spec.early_stop);
  visit({.proto = "only_missing"}, spec.only_missing);
  visit({.proto = "limits_ns"}, spec.limits_ns);
  visit({.proto = "references_ns"}, spec.references_ns);
  visit({.proto = "network_weights"}, spec.network_weights);
  visit({.proto = "network_names"}, spec.network_names);
  visit({.proto = "tasks"}, spec.tasks);
}

template <record::Is<NetworkTaskSpec> S, typename Visit>
void VisitFields(S& task, Visit& visit) {
  visit({.proto = "workload"}, task.workload);
  visit({.proto = "weights"}, task.weights);
}

// All fields except the curve.
template <record::Is<NetworkTaskState> S, typename Visit>
void VisitFields(S& task, Visit& visit) {
  visit({.proto = "workload_digest"}, task.workload_digest);
  visit({.proto = "op"}, task.op);
  visit({.proto = "flops"}, task.flops);
  visit({.proto = "granted"}, task.granted);
  visit({.proto = "trials"}, task.trials);
  visit({.proto = "earlier_trials"}, task.earlier_trials);
  visit({.proto = "known_latency_ns"}, task.known_latency_ns);
  visit({.proto = "latency_ns"}, task.latency_ns);
  visit({.proto = "default_latency_ns"}, task.default_latency_ns);
  visit({.proto = "gflops"}, task.gflops);
  visit({.proto = "peak_gflops"}, task.peak_gflops);
  visit({.proto = "seconds"}, task.seconds);
  visit({.proto = "confirmed"}, task.confirmed);
  visit({.proto = "disturbed"}, task.disturbed);
  visit({.proto = "closed"}, task.closed);
  visit({.proto = "state"}, task.state);
  visit({.proto = "error"}, task.error);
}

template <record::Is<NetworkEstimate> E, typename Visit>
void VisitFields(E& estimate, Visit& visit) {
  visit({.proto = "wall_ms"}, estimate.wall_ms);
  visit({.proto = "trials"}, estimate.trials);
  visit({.proto = "latency_ns"}, estimate.latency_ns);
}

template <record::Is<ProposerState> P, typename Visit>
void VisitFields(P& proposer, Visit& visit) {
  visit({.proto = "accepted"}, proposer.accepted);
  visit({.proto = "measured"}, proposer.measured);
  visit({.proto = "latency_ns"}, proposer.latency_ns);
}

template <record::Is<RiskyStep> S, typename Visit>
void VisitFields(S& step, Visit& visit) {
  visit({.proto = "name"}, step.name);
  visit({.proto = "server"}, step.server);
  visit({.proto = "boot"}, step.boot);
}

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_TYPES_H_

#ifndef HONE_CLIENT_CLI_RECORDS_KNOWN_BEST_H_
#define HONE_CLIENT_CLI_RECORDS_KNOWN_BEST_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "common/record/artifact.h"

namespace hone::cli {

// The words of a command line that name a stored best.
struct BestWords {
  std::vector<std::string> words;  // the workload
  double tolerance = 0;
};

// Adds the words and --tolerance to a command.
void AddBestWords(Command& command, BestWords& words, bool required = true,
                  Names names = Names::kOperator);

// A workload on the target of the command line, and the session of the command.
struct NamedTask {
  WorkloadArgument argument;
  std::unique_ptr<Session> session;
  client::Task task;
  // "OP … on TARGET", with the tolerance if it is not strict.
  std::string Title() const;
};

// Opens a session for a task. Does not start a worker. Errors as for ReadWorkloadArgument and
// Session::Open.
absl::StatusOr<NamedTask> OpenTask(const Globals& globals, const BestWords& words);

// The best of a workload, and the session that it was looked up in.
struct KnownBest {
  WorkloadArgument argument;
  std::unique_ptr<Session> session;
  v1::Best best;
};

// The best of a workload: with --locked the locked one (see LockedBests), otherwise as
// client::Connection::LookupBest returns it. Errors are those of these two.
absl::StatusOr<v1::Best> FindBest(Session& session, const WorkloadArgument& argument,
                                  const std::string& target, double tolerance,
                                  bool nearest = false);

struct LookUpOptions {
  bool nearest = false;  // see client::Connection::LookupBest
  std::string hint;      // added to the message if no best is known
};

// Opens a session and looks up the best. Does not start a worker. NothingKnownError: no best is
// known; the message says how to find one. Other errors as for ReadWorkloadArgument, Session::Open
// and Connection::LookupBest.
absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, const BestWords& words,
                                     const LookUpOptions& options = {});
absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, WorkloadArgument argument,
                                     double tolerance, const LookUpOptions& options = {});

// Returns the end of the message that nothing is known of a workload: how to find it.
std::string HowToFind(Session& session, const std::string& target, double tolerance,
                      const WorkloadArgument& argument);

// Returns a hint to append to the message that nothing is known: the store has imported records,
// and a command confirms them. "" if it has none, or if no worker can measure them. `argument`: the
// workload; null: any.
std::string ImportedHint(Session& session, const std::string& target,
                         const WorkloadArgument* argument);

// What is known of a workload without a best.
struct Unconfirmed {
  std::string job;  // the last one that measured candidates of it; "": none
  // The fastest measured candidate whose output was checked on its target, with its trace. nullopt
  // if no candidate was measured, or if the store no longer has the job that measured it.
  std::optional<v1::Best> measured;
};

// Finds the jobs that measured workloads of a list without confirming a schedule.
class UnconfirmedJobs {
 public:
  // Each look-up takes a few calls, so `most` limits their number. `session` must outlive this
  // object.
  static constexpr int kMostOfAList = 100;
  UnconfirmedJobs(Session& session, std::string target, double tolerance, int most = kMostOfAList)
      : session_(session), target_(std::move(target)), tolerance_(tolerance), most_(most) {}

  // Returns what was measured of a workload. Empty if nothing was, if it was forgotten, if the
  // workload is not looked up, or if the server does not answer. `job` is "" if hone run made it,
  // because that confirms nothing. REQUIRES: the workload has no best.
  Unconfirmed Find(const WorkloadArgument& argument);

 private:
  Session& session_;
  const std::string target_;
  const double tolerance_;
  const int most_;
  int looked_up_ = 0;
};

// Whether a measured candidate of a job may be used without a confirmation: it is of the workload
// with this digest, has a latency and a trace, was not forgotten, and its output was checked.
bool IsUsable(const v1::Best& measured, absl::string_view workload_digest);

// Returns the job that made the newest successful measurement of a workload. Returns "" if there is
// no measurement, or if any measurement of that job was forgotten: `hone forget` does not mark
// those that other work disturbed. REQUIRES: the newest measurement is the first one.
std::string UnconfirmedJobIn(absl::Span<const record::Record> newest);

// What a list says about a workload without a best: "job 7, not confirmed", "imported, not
// confirmed" if the job is of another store, or "nothing known" if `unconfirmed_job` is "".
std::string UnknownText(const std::string& unconfirmed_job);
// The same for JSON: the job, or null if it is of another store.
Json UnknownJson(const std::string& unconfirmed_job);

// "pinned by NAME on DATE", without the name if it is unknown. REQUIRES: the best is pinned.
std::string PinText(const v1::Best& best);

// Looks up every workload of a list on one connection, and calls `visit` for each of them in order,
// with nullopt if no best is known. With --locked, all are the locked ones. Returns the digests of
// the workloads without a best. Errors as for Session::TargetKey, Connection::LookupBests and
// LockedBests, and those of `visit`.
absl::StatusOr<std::vector<std::string>> VisitBests(
    Session& session, const std::vector<WorkloadArgument>& list, double tolerance, bool nearest,
    absl::FunctionRef<absl::Status(const WorkloadArgument&, const std::optional<v1::Best>&)> visit);

// Returns a NothingKnownError that reports how many of a list's workloads are `unknown`, given by
// their digests, and how to find them; OK if there are none. `file` is "" for a list on the command
// line, whose words are `words`.
absl::Status CheckAllKnown(Session& session, absl::Span<const std::string> unknown,
                           size_t workloads, const std::string& file, const std::string& target,
                           double tolerance, const std::string& words = "");

// The kernel that was built and measured for a best. FailedPrecondition: the store no longer has
// it. InvalidArgument: the bytes are not an artifact. Other errors as for
// client::Connection::Artifact.
absl::StatusOr<record::Artifact> ArtifactOf(Session& session, const v1::Best& best);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_KNOWN_BEST_H_

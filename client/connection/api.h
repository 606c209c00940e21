#ifndef HONE_CLIENT_CONNECTION_API_H_
#define HONE_CLIENT_CONNECTION_API_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/ir/roofline.h"
#include "common/record/record.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/dashboard.pb.h"
#include "hone/v1/tuning.pb.h"

// What the users of a connection need beside the messages of hone.v1.
namespace hone::client {

// What is tuned: one workload on one target.
struct Task {
  std::string workload_digest;
  std::string target;  // key
  double tolerance = 0;
};

// Asks for the best of a workload on a target; see Connection::LookupBest.
v1::LookupBestRequest BestQuery(const std::string& workload, const std::string& target,
                                double tolerance, bool nearest);

// The reason for a report of a watched job.
enum class JobNews {
  kChanged,  // a new state
  kNone,     // time has passed
  // The connection to the server is lost, and the state is the last one before that; or the server
  // answers that it cannot serve, and the wait reason of the job says why.
  kNoServer,
};

// Returns InvalidArgument, naming the field, if a server sent a value that this version does not
// know or a malformed record.
absl::Status Check(const v1::Best& best);
absl::Status Check(const v1::Job& job);
absl::Status Check(const v1::WorkerInfo& worker);
absl::Status Check(const v1::Explanation& explanation);

// The record of a best. REQUIRES: Check(best) is OK, as it is for each best of a connection.
record::Record RecordOf(const v1::Best& best);
// The speeds that the roofline of a best needs.
ir::MeasuredSpeed SpeedOf(const v1::Best& best);
// "ok", "crash", … REQUIRES: a known outcome, as in a best of a connection.
absl::string_view OutcomeName(v1::Outcome outcome);

// "pending", "running", …; "" if the state is unspecified.
std::string JobStateName(v1::JobState state);
inline bool HasEnded(v1::JobState state) { return state >= v1::JOB_STATE_DONE; }

// The time until a job should end; infinite: there is no limit.
absl::Duration TimeLeft(const v1::Job& job);
// The trials of each outcome, sorted by name.
std::map<std::string, int64_t> OutcomesOf(const v1::Job& job);

// Whether the latency of a best or of a task is confirmed. Any other latency is marked with ~,
// because it may change. A published best is confirmed unless other work disturbed every process
// that measured it.
template <typename Measured>
bool LatencyIsConfirmed(const Measured& measured) {
  return measured.confirmed() && !measured.disturbed();
}

// Whether the best of this job is known to have been quarantined since it was confirmed. (The best
// of a search may come from a measurement that other work disturbed. It is then quarantined from
// the start.)
bool BestIsWithdrawn(const v1::Job& job);

// Whether another job found the best of this job: an earlier best stays published unless the best
// of the job's own candidates is significantly faster.
bool BestIsOfAnotherJob(const v1::Job& job);

// What this job has found, as far as it is known: the best of its own candidates or else its best.
// Null if there is neither.
const v1::Best* BestFound(const v1::Job& job);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_API_H_

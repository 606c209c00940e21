#ifndef HONE_SERVER_JOB_SEARCH_PROPOSALS_H_
#define HONE_SERVER_JOB_SEARCH_PROPOSALS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/job/actor/task_environment.h"

namespace hone::job {

// Schedules that other programs propose for the search of a job (docs/proposers.md): the limits,
// the answers, and those that wait until they are measured.

// The most proposals of a job that wait, of all programs and of one. However many the others have,
// a program may have a few.
inline constexpr size_t kMostWaiting = 256;
inline constexpr size_t kMostWaitingOfOne = 64;
inline constexpr size_t kAlwaysMayWait = 8;
// The most bytes of the design spaces that proposals add to a job, which keeps them in memory.
inline constexpr size_t kMostAddedBytes = 64 << 20;
// The most programs that may propose for a job, and the most names of programs that one caller may
// bring.
inline constexpr size_t kMostProposers = 32;
inline constexpr size_t kMostProposersOfOne = 8;
// The most traces that are being checked at the same time, of all callers and of one.
inline constexpr int kMostChecked = 256;
inline constexpr int kMostCheckedOfOne = 64;

// A call of a program.
struct Proposals {
  std::string proposer;
  std::string caller;               // who calls; "" without authentication
  std::vector<std::string> traces;  // texts of trace files
  StopCheck check;                  // whether the caller still waits; may be null
  std::shared_ptr<void> place;      // of CheckingLimit

  absl::Status CheckCaller() const { return check == nullptr ? absl::OkStatus() : check(); }
};

struct Verdict {
  int64_t trial = -1;  // -1: refused
  Refusal refusal = Refusal::kNone;
  std::string why;  // as text for users
};

struct Verdicts {
  std::vector<Verdict> each;  // of each trace, in order
  int64_t waiting = 0;        // accepted proposals of all programs that are not submitted yet
};

// Answers a call once. If it is destroyed before, it answers Unavailable: the job was suspended, or
// could not store the proposals.
class ProposalAnswer {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<Verdicts>) &&>;
  explicit ProposalAnswer(Done done) : done_(std::move(done)) {}
  ProposalAnswer(ProposalAnswer&& other) noexcept : done_(std::exchange(other.done_, nullptr)) {}
  ProposalAnswer& operator=(ProposalAnswer&&) = delete;
  ~ProposalAnswer() {
    if (done_ != nullptr)
      (*this)(absl::UnavailableError("the job could not take the proposals; try again"));
  }
  void operator()(absl::StatusOr<Verdicts> verdicts) {
    std::exchange(done_, nullptr)(std::move(verdicts));
  }

 private:
  Done done_;
};

// Reads a trace, which takes about as long as a replay. A trace that throws an exception is
// refused.
GivenCandidate ReadProposal(const std::string& trace, const TaskSpaces& spaces, double tolerance);

// Limits how many traces are checked at the same time, because each is replayed. Thread-safe.
// Places keep it alive.
class CheckingLimit : public std::enable_shared_from_this<CheckingLimit> {
 public:
  // Returns a place for the traces of a call, which is free again when it is destroyed.
  // ResourceExhausted: a limit is reached.
  absl::StatusOr<std::shared_ptr<void>> Enter(const std::string& caller, int traces);

 private:
  absl::Mutex mutex_;
  int all_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> of_caller_ ABSL_GUARDED_BY(mutex_);
};

// The accepted proposals of a job that wait until they are submitted. Programs take turns, so that
// one with many proposals does not delay the others. Belongs to the job's strand.
class WaitingProposals {
 public:
  // `stored`: its event is durable.
  void Add(int64_t trial, std::string proposer, bool stored);
  void SetStored(int64_t trial);
  size_t size() const { return waiting_.size(); }
  size_t CountOf(const std::string& proposer) const;
  // Returns why a program may not add another proposal now; "" if it may. `added_bytes`: of design
  // spaces that proposals have added, if this one adds another, otherwise 0.
  std::string WhyFull(const std::string& proposer, size_t added_bytes) const;
  // The number of stored ones.
  int Ready() const;
  // Removes n stored ones, those of each program in order. REQUIRES: n <= Ready().
  std::vector<int64_t> Take(int n);

 private:
  struct Waiting {
    int64_t trial = 0;
    std::string proposer;
    bool stored = false;
  };
  std::deque<Waiting> waiting_;
  std::map<std::string, int64_t> turns_;  // the last turn of each program
  int64_t turn_ = 0;
};

// Counts the names of programs that each caller brings to a job. A restart of the server forgets
// who brought a name. Belongs to the job's strand.
class ProposerNames {
 public:
  // Whether `caller` may bring another name to a job that has `known` ones. ResourceExhausted: the
  // job has too many, or too many of this caller, which does not apply to a caller without a name.
  absl::Status Check(const std::string& job, size_t known, const std::string& caller) const;
  void Add(const std::string& caller) { ++of_caller_[caller]; }

 private:
  std::map<std::string, size_t> of_caller_;
};

// Returns how many candidates of a batch proposals may have while the search proposes, too: half of
// them; of batches of one candidate, every other one. `proposed`: the candidates before the batch.
int ShareOfProposals(int batch, int64_t proposed);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_PROPOSALS_H_

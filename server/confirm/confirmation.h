#ifndef HONE_SERVER_CONFIRM_CONFIRMATION_H_
#define HONE_SERVER_CONFIRM_CONFIRMATION_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/record/record.h"

namespace hone::job {

struct ConfirmationOptions {
  int finalists = 8;  // at most, not counting the incumbent
  // This many are taken even if they are slow. Further finalists must have been at most `within`
  // times as slow as the best in screening.
  int min_finalists = 4;
  double within = 1.4;
  int min_rounds = 3;      // processes that measure a finalist before it is published
  int last_finalists = 3;  // continue to the end, not counting the incumbent
  int max_rounds = 6;  // the order is final after these; twice as many if processes are disturbed
  int repeats = 5;     // Policy::repeats of a process; fewer make it brief
  // A finalist drops out if it is certainly slower than the best and its log-ratio exceeds this.
  // The second limit is for the first round, which says nothing about other processes.
  double drop_above = 0.03;
  double drop_first = 0.20;
};

// One brief process of the fastest candidate. For the first choice of a network's task, so that
// each task has a best early, however little time is left; a later confirmation replaces it.
inline constexpr ConfirmationOptions kBriefConfirmation = {.finalists = 1,
                                                           .min_finalists = 1,
                                                           .within = 1,
                                                           .min_rounds = 1,
                                                           .last_finalists = 1,
                                                           .max_rounds = 1,
                                                           .repeats = 3};

// Decides which finalist is the best by measuring them again in rounds. In each round every
// remaining finalist runs once, in its own process and in random order; in the first round, the
// finalist that was the fastest of the screening runs first. Finalists are compared by
// the median over the rounds of the log-ratio of their steady latencies in the same round.
// Intervals come from a bootstrap that draws rounds and then samples in a round, because the
// samples of one process are not independent. Losers drop out, but the runner-up runs in at least
// min_rounds processes. A tie keeps the incumbent.
//
// Each of the first rounds keeps the faster half of the finalists (successive halving, Jamieson and
// Talwalkar 2016). If processes differ by 0.5 to 4 % at random, the winner is as fast in the mean
// as if all eight finalists ran in all three rounds, after 15 instead of 24 processes.
//
// A process that was disturbed by other work does not count: its finalist has no result in that
// round. Finalists without a common round are compared by their medians, and count as equal unless
// these differ by more than drop_first. If disturbed results are accepted, a finalist without an
// undisturbed one has the latency of the fastest disturbed one, because other work makes a kernel
// slower but never faster.
//
// Pure logic: no time, no I/O; the same seed and results give the same decision. Not thread-safe.
class Confirmation {
 public:
  // Finalists are numbered in order of screened latency. `incumbent`: the number of the published
  // best; -1 if nothing is published.
  Confirmation(int finalists, int incumbent, uint64_t seed, ConfirmationOptions options = {});

  // Begins the next round and returns its finalists, in the order to run them. Empty once the best
  // is known.
  std::vector<int> NextRound();
  // Adds the result of a finalist in the current round. The finalist drops out if the result is not
  // ok.
  void Report(int finalist, const record::MeasureResult& result);
  // Reports that a finalist ran correctly in the current round, but in a disturbed process, or that
  // its process failed for a reason that may be the machine's. The second form accepts its result,
  // for a finalist without an undisturbed one.
  void ReportDisturbed(int finalist);
  void ReportDisturbed(int finalist, const record::MeasureResult& result);
  // Adds undisturbed processes that ran before, for example those of the search's leader. They
  // count while the rounds give fewer than min_rounds results; those of the yardstick only if it
  // has no others, or if both together are enough. REQUIRES: all are ok.
  void AddEarlier(int finalist, std::vector<record::MeasureResult> results);
  // Accepts the result of a disturbed process after the last round.
  void AddDisturbed(int finalist, const record::MeasureResult& result) {
    entries_[finalist].disturbed[round_] = result;
  }
  bool RoundIsComplete() const { return pending_ == 0; }
  // Begins again with only the winner, whose undisturbed processes count as earlier ones, and a
  // newly published incumbent, which may be a new finalist with the next number.
  void BeginAgain(int winner, int incumbent);
  int rounds() const { return round_; }
  // The number of finalists that have not dropped out.
  int remaining() const { return static_cast<int>(Left().size()); }
  // Drops the slowest finalists if `runs` more runs are too few for all of them to reach
  // min_rounds. The best and the incumbent stay.
  void LimitRuns(double runs);

  // Keeps a finalist as the yardstick for speed-ups: even if it drops out, it runs in each round
  // until it has results of min_rounds processes. Drops it at once if it does not compete.
  void SetYardstick(int finalist, bool competes);
  // Ends the current round without the results that are missing. In the first round, finalists
  // that were not measured, now or earlier, drop out. Of a later round, only the results of
  // finalists that have no other are kept. Returns false and changes nothing if no finalist would
  // be left.
  bool CutRound();

  // Returns the remaining finalists that have a result, best first. The incumbent is first unless
  // another one is certainly faster. A finalist with results of fewer than min_rounds processes
  // comes after those with enough, unless it is faster than all of them by drop_first.
  std::vector<int> Ranking() const;
  // Returns whether a finalist has a result, even if it has dropped out.
  bool HasResult(int finalist) const { return Processes(finalist) > 0; }
  // Returns whether a process of this confirmation has measured a finalist.
  bool HasRun(int finalist) const { return entries_[finalist].OwnProcesses() > 0; }
  // Returns whether a finalist has no result although it did not fail: its processes were
  // disturbed, or it did not run in time.
  bool IsUnmeasured(int finalist) const {
    return !entries_[finalist].failed && !HasResult(finalist);
  }
  // Returns whether a remaining finalist has no result because all of its processes were disturbed.
  bool AnyIsDisturbed() const;
  // Returns the undisturbed processes of a finalist as one result (record::MedianOfProcesses), or
  // the fastest disturbed one if there is no other. REQUIRES: HasResult(finalist).
  record::MeasureResult Combined(int finalist) const;

 private:
  struct Entry {
    bool out = false;
    bool failed = false;
    bool reported = false;                           // in the current round
    std::map<int, record::MeasureResult> rounds;     // undisturbed results by round
    std::map<int, record::MeasureResult> disturbed;  // those that are accepted, by round
    std::vector<record::MeasureResult> earlier;      // see AddEarlier
    int OwnProcesses() const { return static_cast<int>(rounds.size() + disturbed.size()); }
  };
  struct Interval {
    double low = 0;
    double median = 0;
    double high = 0;
  };
  // Returns the log-ratios of a's latency to b's in the rounds in which both have a result; if
  // there is none, the one log-ratio of their medians. REQUIRES: both have a result.
  std::vector<double> Ratios(int a, int b) const;
  // Returns the median of Ratios() with its interval, which takes a thousand times as long.
  Interval Compare(int a, int b) const;
  std::vector<int> Left() const;
  bool CountsEarlier(int finalist) const;
  int Processes(int finalist) const;
  bool Decided() const;

  const uint64_t seed_;
  const ConfirmationOptions options_;
  int incumbent_;
  int yardstick_ = -1;
  std::vector<Entry> entries_;
  int round_ = 0;    // number of rounds begun
  int pending_ = 0;  // results that the current round waits for
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_CONFIRMATION_H_

#ifndef HONE_SERVER_TASK_CONFIRMATION_H_
#define HONE_SERVER_TASK_CONFIRMATION_H_

#include <cstdint>
#include <vector>

#include "common/record/record.h"

namespace hone::task {

struct ConfirmationOptions {
  int finalists = 8;         // at most, without the incumbent
  int min_finalists = 4;     // however slow they looked; beyond these …
  double within = 1.4;       // … a screened latency is at most this multiple of the best
  int min_rounds = 3;        // fresh processes of every finalist that is published
  int last_finalists = 3;    // so many go on after min_rounds, and the incumbent
  int max_rounds = 6;        // then the order stands as it is
  double drop_above = 0.03;  // a loser is slower by more than this, and surely slower …
  double drop_first =
      0.20;  // … after one round, which says nothing of other processes, by a log of this
};

// Decides which of the finalists is the best, by measuring them again in rounds: in each round
// every finalist that is left runs once, in a process of its own and in random order. Finalists are
// compared by the median over the rounds of the log-ratio of their steady latencies in the same
// round; intervals come from a bootstrap that draws rounds, and then samples in a round, because
// samples of one process are not independent. Losers drop out. A tie keeps the incumbent.
//
// Pure logic: no time, no I/O; the same seed and results give the same decision. Not thread-safe.
class Confirmation {
 public:
  // Finalists are known by their index, in order of screened latency. `incumbent`: the index of the
  // published best; -1: none.
  Confirmation(int finalists, int incumbent, uint64_t seed, ConfirmationOptions options = {});

  // The finalists of the next round, in the order to run them. Empty: it is decided.
  std::vector<int> NextRound();
  // The result of a finalist in the current round. One that is not ok puts it out.
  void Report(int finalist, const record::MeasureResult& result);
  bool RoundIsComplete() const { return pending_ == 0; }
  int rounds() const { return round_; }

  // Who is left, best first. The incumbent is first when nobody is surely faster.
  std::vector<int> Ranking() const;
  // All rounds of a finalist as one result: every sample, and the median of the rounds' latencies.
  // REQUIRES it ran once.
  record::MeasureResult Combined(int finalist) const;

 private:
  struct Entry {
    bool out = false;
    std::vector<record::MeasureResult> rounds;
  };
  struct Interval {
    double low = 0;
    double median = 0;
    double high = 0;
  };
  // The log-ratios of a's latency to b's in the rounds that both ran, …
  std::vector<double> Ratios(int a, int b) const;
  // … their median, and the interval of it, which costs a thousand times as much.
  Interval Compare(int a, int b) const;
  std::vector<int> Left() const;
  bool Decided() const;

  const uint64_t seed_;
  const ConfirmationOptions options_;
  const int incumbent_;
  std::vector<Entry> entries_;
  int round_ = 0;    // rounds begun
  int pending_ = 0;  // results that the current round waits for
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_CONFIRMATION_H_

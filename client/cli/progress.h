#ifndef HONE_CLIENT_CLI_PROGRESS_H_
#define HONE_CLIENT_CLI_PROGRESS_H_

#include <limits>
#include <string>

#include "absl/time/time.h"
#include "client/lib/api.h"

namespace hone::cli {

// What is going on in a job, in one line for a person: trials, best, invalid share, speed, time
// left, phase. What does not fit into `columns` leaves out the share of the peak, then the speed,
// then the invalid share, then words that the rest explains.
std::string ProgressText(const client::Job& job, int columns = std::numeric_limits<int>::max());

// Shows the progress of a command on standard error: on a terminal one line that is written over,
// elsewhere (and where TERM is dumb) a plain line whenever something of interest has changed, a few
// seconds apart. Used by one thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();

  // How long a text may be to be shown in full.
  int columns() const;
  // The text of now. `important` lines are shown without waiting for the interval (not on a
  // terminal, which shows all).
  void Show(const std::string& text, bool important = false);
  // Takes the live line away, so that other output may follow.
  void Clear();

 private:
  const bool terminal_;
  std::string shown_;
  absl::Time shown_at_ = absl::InfinitePast();
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_PROGRESS_H_

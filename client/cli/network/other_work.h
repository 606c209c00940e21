#ifndef HONE_CLIENT_CLI_NETWORK_OTHER_WORK_H_
#define HONE_CLIENT_CLI_NETWORK_OTHER_WORK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::cli {

// Observes what other programs on this machine take from this process, from the construction on.
class OtherWork {
 public:
  // `clock` must outlive this object. `root` replaces / in tests.
  explicit OtherWork(const Clock* clock, std::string root = "");

  // How many times a thread of this process has lost its core to another thread.
  int64_t Interruptions() const;
  // How many cores other programs have used on average; nullopt if it is too early to tell, or if
  // the system does not report it.
  std::optional<double> Cores() const;

 private:
  const Clock* const clock_;
  const std::string root_;
  // At the construction.
  const absl::Time begin_;
  const std::optional<double> others_s_;
  const int64_t interruptions_;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_OTHER_WORK_H_

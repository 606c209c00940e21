#include "tests/bench/load/session_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "tests/bench/load/session.h"
#include "tests/bench/load/simulated.h"

namespace hone::load {

absl::Status RunSessions(const SessionProcessOptions& options) {
  // Blocked before any other thread starts, because only this thread handles them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  const v1::Capabilities device = SimulatedDevice();
  Counts counts;
  std::vector<std::unique_ptr<Session>> sessions;
  Timers timers;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < std::max(options.connections, 1); ++i) {
    HONE_ASSIGN_OR_RETURN(channels.emplace_back(), rpc::CreateChannel(options.server, {}));
  }
  HONE_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(options.server, {}));
  Transfers transfers(channel, &counts);
  const absl::Time begin = absl::Now();
  for (int i = 0; i < options.count; ++i) {
    sessions.push_back(std::make_unique<Session>(
        SessionOptions{.worker_id = absl::StrCat("board-", options.first + i),
                       .slots = options.slots,
                       .run_time = options.run_time},
        channels[i % channels.size()], Session::Rooms{&device, &timers, &transfers, &counts}));
    timers.At(begin + options.ramp * i / options.count,
              [raw = sessions.back().get()] { raw->Start(); });
  }
  int received = 0;
  sigwait(&signals, &received);
  std::printf("%s\n", counts.ToJson().c_str());
  std::fflush(stdout);
  _exit(0);
}

}  // namespace hone::load

#ifndef HONE_TESTS_FUZZ_HANDLERS_WORLD_H_
#define HONE_TESTS_FUZZ_HANDLERS_WORLD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/server_certificates.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/job/job_manager.h"
#include "server/job/search/draft_work.h"
#include "server/job/search/model_work.h"
#include "server/service/gate.h"
#include "server/service/listener.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/standing_keeper.h"
#include "server/service/transfer_handler.h"
#include "server/service/watch_hub.h"
#include "server/store/store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_executor.h"
#include "tests/temporary_folder.h"

namespace hone::fuzz {

// The parts of a server, with fake design spaces and a simulated clock: the three services behind
// authentication, on a Unix socket in a temporary folder. Time advances while a call waits, and in
// Pass. Lease ids are "fuzz-1", "fuzz-2", …, job ids "1", "2", …. Used by one thread.
class HandlersWorld {
 public:
  // With `on_disk` it is slower, but backups work.
  explicit HandlersWorld(bool on_disk);
  ~HandlersWorld();

  struct Reply {
    grpc::Status status;
    std::vector<std::string> messages;
  };
  // Calls a method: sends the messages unchanged and reads a limited number of answers before it
  // disconnects. Ends the process if the call is not answered.
  Reply Call(const std::string& method, const std::vector<std::string>& messages,
             const std::string& token, int most_answers = 1 << 20);
  // Returns the token of a role: "client", "worker" or "admin".
  static std::string TokenOf(absl::string_view role);

  // Advances time in steps without calls.
  void Pass(absl::Duration time, absl::Duration step);
  // Checks the invariants: every job ends, the fleet becomes empty, and each trial is recorded
  // once. Ends the process if one is violated.
  void CheckWhatMustHold();

  const std::string& folder() const { return folder_.path(); }
  job::JobManager& jobs() { return jobs_; }

 private:
  // Runs scheduled work and writes. Returns whether there was any.
  bool Work();

  FakeClock clock_;
  const TemporaryFolder folder_;
  rpc::Authenticator authenticator_;
  rpc::RateLimiter limiter_;
  rpc::ServerCertificates certificates_;
  service::Readiness readiness_;
  const std::unique_ptr<store::Store> store_;
  job::ManualExecutor executor_;
  fleet::ArtifactCache artifacts_;
  service::TransferHandler uploads_;
  service::TransferHandler downloads_;
  fleet::Fleet fleet_;
  service::StandingKeeper standings_;
  service::WorkerMemory worker_memory_;
  job::FakeTaskEnvironment environment_;
  const job::JobServices services_;
  job::JobManager jobs_;
  job::ModelWork models_;
  job::DraftWork drafts_;
  service::ReaderThreads readers_;
  service::WatchHub watches_;
  service::Services handlers_;
  std::unique_ptr<service::Listener> listener_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_HANDLERS_WORLD_H_

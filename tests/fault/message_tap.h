#ifndef HONE_TESTS_FAULT_MESSAGE_TAP_H_
#define HONE_TESTS_FAULT_MESSAGE_TAP_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/fault/fault_schedule.h"
#include "tests/fault/ledger.h"

namespace hone::fault {

// Stands between the workers and the server, passes their calls on, notes in the ledger what is
// promised, and loses, delays, doubles and repeats messages when it is told to.
class MessageTap final : public v1::WorkerService::Service {
 public:
  // Serves on the Unix socket `listen` what the server at `server` answers. `ledger` outlives it.
  static absl::StatusOr<std::unique_ptr<MessageTap>> Start(const std::string& listen,
                                                           const std::string& server,
                                                           Ledger* ledger);
  ~MessageTap() override;

  // What becomes of the next `calls` calls: one of the kinds about messages.
  void Trouble(FaultKind kind, int calls, absl::Duration delay);
  // How many calls met trouble.
  int64_t troubled() const;

 private:
  explicit MessageTap(Ledger* ledger) : ledger_(ledger) {}

  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override;
  grpc::Status UploadArtifact(grpc::ServerContext* context,
                              grpc::ServerReader<v1::WorkerArtifactChunk>* reader,
                              v1::UploadArtifactResponse* response) override;
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::WorkerArtifactChunk>* writer) override;

  // Passes one call on and notes it.
  grpc::Status Pass(grpc::ServerContext* context, const v1::SynchronizeRequest& request,
                    v1::SynchronizeResponse* response);
  // Whether this call meets that trouble, which is then used up.
  bool Meets(FaultKind kind);
  // Of the results that this worker handed in last.
  v1::SynchronizeRequest Earlier(const v1::SynchronizeRequest& request);

  Ledger* const ledger_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mutex_;
  std::map<FaultKind, int> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  int64_t troubled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, v1::SynchronizeRequest> last_ ABSL_GUARDED_BY(mutex_);  // by worker
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_MESSAGE_TAP_H_

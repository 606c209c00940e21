#ifndef HONE_TESTS_SERVER_SERVICE_SERVICE_HARNESS_H_
#define HONE_TESTS_SERVER_SERVICE_SERVICE_HARNESS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "hone/v1/worker.grpc.pb.h"
#include "server/service/server.h"
#include "tests/temporary_folder.h"

namespace hone::service {

// Waits at most a minute for `condition`. Returns whether it holds.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Time limit = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() > limit) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

// A worker over gRPC that measures with FakeLatency. Its artifacts are the decisions as text.
class RemoteWorker {
 public:
  RemoteWorker(std::shared_ptr<grpc::Channel> channel, std::string id);
  ~RemoteWorker();  // simulates a kill

  static v1::SynchronizeRequest Hello(const std::string& id);

  std::atomic<int> slow{0};  // while set, the worker finishes nothing

 private:
  void Run();
  absl::Status Upload(const std::string& digest);

  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  const std::string id_;
  std::map<std::string, std::string> artifacts_;
  absl::Mutex mutex_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A server in this process on a Unix socket in a temporary folder, with a real store and fake
// design spaces.
class ServiceHarness {
 public:
  ServiceHarness();
  ~ServiceHarness();

  // Starts a server on the socket and the store of the folder.
  absl::Status Start(ServerOptions options = {});
  // `environment`: null for one without watched steps.
  absl::Status StartWith(std::unique_ptr<store::Store> store, ServerOptions options = {},
                         std::unique_ptr<job::TaskEnvironment> environment = nullptr);
  // Stops the server; the store remains. Checks that the store was read on no thread of gRPC or of
  // the fleet.
  void Stop();
  std::shared_ptr<grpc::Channel> Connect();

  static v1::CreateJobRequest Request(int64_t trials, const std::string& request_id = "");
  // The request for the best of a workload on target t.
  static v1::LookupBestRequest BestOf(const std::string& workload = "fake op 12");
  static v1::GetJobRequest JobOf(const std::string& id);
  // Returns a metric of the server. `value`: of its label; "": it has none.
  int64_t Metric(const std::string& name, const std::string& value = "");
  // Returns the answer to the creation of a job.
  grpc::Status Create(const v1::CreateJobRequest& request);
  // Calls a unary method by name with arbitrary bytes as the request.
  static absl::Status Raw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::string& bytes);
  // Waits for the end of a job and returns the job.
  v1::Job WaitForEnd(const std::string& id);

  const TemporaryFolder temporary_folder;
  std::string folder = temporary_folder.path();
  rpc::Address address;
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::TuningService::Stub> tuning;
  std::unique_ptr<v1::WorkerService::Stub> working;
};

// Calls a unary method with a deadline.
template <typename Stub, typename Request, typename Response>
grpc::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  return (stub.*method)(&context, request, response);
}

}  // namespace hone::service

#endif  // HONE_TESTS_SERVER_SERVICE_SERVICE_HARNESS_H_

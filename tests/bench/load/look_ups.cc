#include "tests/bench/load/look_ups.h"

#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/bench/store/known_workloads.h"

namespace hone::load {
namespace {

constexpr int kThreads = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<Caller>> StartLookUps(const std::string& server,
                                                     const std::string& target, double per_second) {
  std::vector<std::string> workloads;
  for (int i = 0; i < kKnownWorkloads; ++i) {
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, KnownWorkload(i));
    workloads.push_back(workload.ToText());
  }
  std::vector<std::shared_ptr<v1::TuningService::Stub>> stubs;
  for (int i = 0; i < kThreads; ++i) {
    HONE_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(server, {}));
    stubs.push_back(v1::TuningService::NewStub(channel));
  }
  return std::make_unique<Caller>(
      per_second, kThreads,
      [workloads = std::move(workloads), stubs = std::move(stubs), target](
          int thread, int64_t i) -> absl::Status {
        v1::LookupBestRequest request;
        request.set_workload(workloads[Rng(static_cast<uint64_t>(i)).Below(workloads.size())]);
        request.set_target(target);
        v1::Best best;
        grpc::ClientContext context;
        rpc::SetDeadline(context);
        HONE_RETURN_IF_ERROR(rpc::FromGrpc(stubs[thread]->LookupBest(&context, request, &best)));
        return best.gflops() > 0 ? absl::OkStatus() : absl::InternalError("a best without a speed");
      });
}

absl::StatusOr<std::unique_ptr<Caller>> StartProbe(const std::string& server, double per_second) {
  HONE_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(server, {}));
  std::shared_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(channel);
  return std::make_unique<Caller>(per_second, 1, [stub](int, int64_t) -> absl::Status {
    v1::SynchronizeRequest request;
    request.set_worker_id("probe");
    request.set_epoch("1");
    v1::SynchronizeResponse response;
    grpc::ClientContext context;
    rpc::SetDeadline(context);
    return rpc::FromGrpc(stub->Synchronize(&context, request, &response));
  });
}

}  // namespace hone::load

#include "client/connection/best_lookups.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/status.h"
#include "grpcpp/grpcpp.h"
#include "tests/status.h"

namespace hone::client {
namespace {

// Knows a best for every workload but "unknown", and limits the rate of calls.
class LimitedServer final : public v1::TuningService::Service {
 public:
  LimitedServer(double per_second, double burst) : limiter_(&clock_, per_second, burst) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    stub_ = v1::TuningService::NewStub(
        rpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), {.insecure = true}).value());
  }

  grpc::Status LookupBest(grpc::ServerContext*, const v1::LookupBestRequest* request,
                          v1::Best* best) override {
    const absl::Status admitted = limiter_.Admit("caller");
    if (!admitted.ok()) ++refused;
    if (!admitted.ok()) return rpc::ToGrpc(admitted);
    if (request->workload() == "unknown") return {grpc::StatusCode::NOT_FOUND, ""};
    if (request->workload() == "wrong") return {grpc::StatusCode::INVALID_ARGUMENT, "wrong"};
    best->set_workload(request->workload());
    return grpc::Status::OK;
  }

  v1::TuningService::Stub& stub() { return *stub_; }
  std::atomic<int> refused = 0;

 private:
  const SystemClock clock_;
  rpc::RateLimiter limiter_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::TuningService::Stub> stub_;
};

std::vector<v1::LookupBestRequest> Requests(int count) {
  std::vector<v1::LookupBestRequest> requests(count);
  for (int i = 0; i < count; ++i) {
    requests[i].set_workload(i % 3 == 0 ? "unknown" : std::string(1 + i, 'w'));
  }
  return requests;
}

TEST(BestLookupsTest, SlowsDownToTheRateOfTheServer) {
  LimitedServer server(/*per_second=*/400, /*burst=*/20);
  const std::vector<v1::LookupBestRequest> requests = Requests(200);
  HONE_ASSERT_OK_AND_ASSIGN(const auto answers,
                            BestLookups(server.stub(), requests, absl::Seconds(20)).Run());
  EXPECT_GT(server.refused, 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(answers[i].has_value(), i % 3 != 0) << i;
    if (i % 3 != 0) {
      EXPECT_EQ(answers[i]->workload(), requests[i].workload());
    }
  }
}

TEST(BestLookupsTest, OtherErrorsEndIt) {
  LimitedServer server(/*per_second=*/0, /*burst=*/0);
  std::vector<v1::LookupBestRequest> requests = Requests(100);
  requests[50].set_workload("wrong");
  EXPECT_THAT(BestLookups(server.stub(), requests, absl::Seconds(20)).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, "wrong"));
}

TEST(BestLookupsTest, GivesUpIfAllAreRefused) {
  LimitedServer server(/*per_second=*/1e-3, /*burst=*/0);
  const std::vector<v1::LookupBestRequest> requests = Requests(3);
  EXPECT_THAT(BestLookups(server.stub(), requests, absl::Milliseconds(200)).Run(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace hone::client

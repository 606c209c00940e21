// A small message that decompresses to a large one must not fill the memory of a server, nor that
// of a client of a hostile server. gRPC would decompress it without a limit.
#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::integration {
namespace {

// The most memory that a process has used so far.
int64_t MostKiB(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    int64_t kib = 0;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && words[0] == "VmHWM:" && absl::SimpleAtoi(words[1], &kib)) return kib;
  }
  return 0;
}

// Answers every question for the workers with a message of a quarter of a MiB as it is sent.
class HostileServer final : public v1::TuningService::Service {
 public:
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    ++asked;
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    response->add_workers()->set_id(std::string(256 << 20, 'a'));
    return grpc::Status::OK;
  }
  std::atomic<int> asked{0};
};

TEST(HostileServerTest, DoesNotFillTheMemoryOfAClient) {
  const TemporaryFolder folder;
  HostileServer hostile;
  const std::string address = "unix:" + folder / "socket";
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&hostile);
  const std::unique_ptr<grpc::Server> listening = builder.BuildAndStart();
  ASSERT_NE(listening, nullptr);
  const Result listed = RunProgram({"hone", "workers", "list", "--server", address},
                                   {{"XDG_CONFIG_HOME", folder.path()}});
  EXPECT_NE(listed.code, 0) << listed.output;
  EXPECT_GT(hostile.asked.load(), 0) << listed.errors;
  rusage used{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &used), 0);
  EXPECT_LT(used.ru_maxrss, 200 << 10) << listed.errors;  // KiB
}

class CompressedMessageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ / "ready"); }))
        << server_.Errors();
    grpc::ChannelArguments arguments;
    arguments.SetMaxSendMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
  }
  static void Prepare(grpc::ClientContext& context) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
  }

  const TemporaryFolder folder_;
  const std::string address_ = "unix:" + folder_ / "socket";
  Process server_{{"hone-server", "--listen", address_, "--store", folder_ / "hone.db",
                   "--ready-file", folder_ / "ready"}};
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(CompressedMessageTest, DoesNotFillTheMemoryOfAServer) {
  const int64_t before_kib = MostKiB(server_.pid());
  ASSERT_GT(before_kib, 0);
  // A quarter of a MiB as it is sent.
  constexpr int64_t kMiB = 256;
  {
    v1::SynchronizeRequest request;
    request.set_worker_id(std::string(kMiB << 20, 'a'));
    grpc::ClientContext context;
    Prepare(context);
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::SynchronizeResponse response;
    const grpc::Status status =
        v1::WorkerService::NewStub(channel_)->Synchronize(&context, request, &response);
    EXPECT_FALSE(status.ok());
    RecordProperty("answer", status.error_message());
  }
  EXPECT_LT(MostKiB(server_.pid()) - before_kib, (kMiB << 10) / 4);

  // A small message is refused in the same way, and one that is not compressed is answered.
  for (const bool compressed : {true, false}) {
    grpc::ClientContext context;
    Prepare(context);
    if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::ListJobsRequest request;
    request.set_page_token(std::string(compressed ? 1000 : 0, 'a'));
    v1::ListJobsResponse response;
    const grpc::Status status =
        v1::TuningService::NewStub(channel_)->ListJobs(&context, request, &response);
    EXPECT_EQ(status.ok(), !compressed) << status.error_message();
    if (compressed)
      std::puts(absl::StrCat(status.error_code(), " ", status.error_message()).c_str());
  }
}

}  // namespace
}  // namespace hone::integration

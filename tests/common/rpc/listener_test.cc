#include "common/rpc/listener.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "gtest/gtest.h"
#include "tests/temporary_folder.h"

namespace hone::rpc {
namespace {

class ListenerTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  Address socket_{.path = folder_ / "s"};
  grpc::CallbackGenericService service_;  // gRPC starts no server without one
};

TEST_F(ListenerTest, ASecondServerOnASocketIsRefusedAndTheFirstStays) {
  grpc::ServerBuilder first;
  ConfigureServer(first);
  first.RegisterCallbackGenericService(&service_);
  ASSERT_TRUE(AddListener(first, socket_, false, nullptr).ok());
  std::unique_ptr<grpc::Server> server = first.BuildAndStart();
  ASSERT_NE(server, nullptr);
  grpc::ServerBuilder second;
  const absl::Status refused = AddListener(second, socket_, false, nullptr);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists) << refused;
  auto channel = CreateChannel(socket_.ToText(), {});
  ASSERT_TRUE(channel.ok());
  EXPECT_TRUE(
      (*channel)->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
  server->Shutdown();
}

TEST_F(ListenerTest, DoesNotReplaceARegularFile) {
  std::ofstream(socket_.path) << "precious";
  grpc::ServerBuilder builder;
  EXPECT_EQ(AddListener(builder, socket_, false, nullptr).code(), absl::StatusCode::kAlreadyExists);
  std::string content;
  std::ifstream(socket_.path) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(ListenerTest, AUsedPortIsNotShared) {
  grpc::ServerBuilder first;
  ConfigureServer(first);
  first.RegisterCallbackGenericService(&service_);
  int port = 0;
  ASSERT_TRUE(AddListener(first, *Address::Parse("127.0.0.1:0"), false, &port).ok());
  std::unique_ptr<grpc::Server> server = first.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ASSERT_GT(port, 0);
  grpc::CallbackGenericService other_service;
  grpc::ServerBuilder second;
  ConfigureServer(second);
  second.RegisterCallbackGenericService(&other_service);
  int other = 0;
  const absl::Status used =
      AddListener(second, Address{.host = "127.0.0.1", .port = port}, false, &other);
  EXPECT_EQ(used,
            absl::AlreadyExistsError(absl::StrCat("another program listens on 127.0.0.1:", port,
                                                  "; stop it, or choose another port")));
  server->Shutdown();
}

TEST(CheckPortFreeTest, ExplainsUnavailableAddresses) {
  EXPECT_TRUE(CheckPortFree({.host = "localhost"}).ok());
  EXPECT_EQ(CheckPortFree({.host = "192.0.2.1", .port = 7070}),
            absl::FailedPreconditionError(
                "cannot listen on 192.0.2.1:7070: it is not an address of this machine"));
  EXPECT_TRUE(absl::IsUnavailable(CheckPortFree({.host = "no.such.host.invalid"})));
}

TEST_F(ListenerTest, ASocketNeedsItsFolder) {
  grpc::ServerBuilder builder;
  const absl::Status missing = AddListener(builder, {.path = folder_ / "none/s"}, false, nullptr);
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr(folder_ / "none"));
}

TEST(ChannelTest, PlainTextToOtherMachinesNeedsInsecure) {
  EXPECT_EQ(CreateChannel("192.0.2.1:70", {}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(CreateChannel("example.org:70", {.insecure = true}).ok());
}

}  // namespace
}  // namespace hone::rpc

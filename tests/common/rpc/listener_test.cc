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
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::rpc {
namespace {

class ListenerTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  Address socket_{.path = folder_ / "s"};
  grpc::CallbackGenericService service_;  // gRPC starts no server without one
  ServerCertificates certificates_{ServerSecurity()};
};

TEST_F(ListenerTest, ASecondServerOnASocketIsRefusedAndTheFirstStays) {
  grpc::ServerBuilder first;
  ConfigureServer(first);
  first.RegisterCallbackGenericService(&service_);
  ASSERT_THAT(AddListener(first, socket_, certificates_, nullptr), IsOk());
  std::unique_ptr<grpc::Server> server = first.BuildAndStart();
  ASSERT_NE(server, nullptr);
  grpc::ServerBuilder second;
  EXPECT_THAT(AddListener(second, socket_, certificates_, nullptr),
              StatusIs(absl::StatusCode::kAlreadyExists));
  HONE_ASSERT_OK_AND_ASSIGN(auto channel, CreateChannel(socket_.ToText(), {}));
  EXPECT_TRUE(
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
  server->Shutdown();
}

TEST_F(ListenerTest, DoesNotReplaceARegularFile) {
  std::ofstream(socket_.path) << "precious";
  grpc::ServerBuilder builder;
  EXPECT_THAT(AddListener(builder, socket_, certificates_, nullptr),
              StatusIs(absl::StatusCode::kAlreadyExists));
  std::string content;
  std::ifstream(socket_.path) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(ListenerTest, AUsedPortIsNotShared) {
  grpc::ServerBuilder first;
  ConfigureServer(first);
  first.RegisterCallbackGenericService(&service_);
  int port = 0;
  ASSERT_THAT(AddListener(first, *Address::Parse("127.0.0.1:0"), certificates_, &port), IsOk());
  std::unique_ptr<grpc::Server> server = first.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ASSERT_GT(port, 0);
  grpc::CallbackGenericService other_service;
  grpc::ServerBuilder second;
  ConfigureServer(second);
  second.RegisterCallbackGenericService(&other_service);
  int other = 0;
  const absl::Status used =
      AddListener(second, Address{.host = "127.0.0.1", .port = port}, certificates_, &other);
  EXPECT_EQ(used,
            absl::AlreadyExistsError(absl::StrCat("another program listens on 127.0.0.1:", port,
                                                  "; stop it, or choose another port")));
  server->Shutdown();
}

TEST(CheckPortFreeTest, ExplainsUnavailableAddresses) {
  EXPECT_THAT(CheckPortFree({.host = "localhost"}), IsOk());
  EXPECT_EQ(CheckPortFree({.host = "192.0.2.1", .port = 7070}),
            absl::FailedPreconditionError(
                "cannot listen on 192.0.2.1:7070: it is not an address of this machine"));
  EXPECT_THAT(CheckPortFree({.host = "no.such.host.invalid"}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ListenerTest, ASocketNeedsItsFolder) {
  grpc::ServerBuilder builder;
  EXPECT_THAT(AddListener(builder, {.path = folder_ / "none/s"}, certificates_, nullptr),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr(folder_ / "none")));
}

TEST(ChannelTest, AListIsCheckedAsAWhole) {
  EXPECT_THAT(CreateChannel("127.0.0.1:70,192.0.2.1:70", {}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(CreateChannel("127.0.0.1:70,localhost:71", {}), IsOk());
  EXPECT_THAT(CreateChannel("127.0.0.1:70,localhost:71", {.ca = "authority"}),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("server-name")));
  EXPECT_THAT(CreateChannel("no.such.host.invalid:70,no.such.host.invalid:71", {.insecure = true}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(ChannelTest, PlainTextToOtherMachinesNeedsInsecure) {
  EXPECT_THAT(CreateChannel("192.0.2.1:70", {}), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(CreateChannel("example.org:70", {.insecure = true}), IsOk());
}

}  // namespace
}  // namespace hone::rpc

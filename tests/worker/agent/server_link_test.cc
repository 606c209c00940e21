#include "worker/agent/server_link.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/deflate.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/record/reference_name.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "common/rpc/server_certificates.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::agent {
namespace {

using ::testing::ElementsAre;

// Sends `bytes_per_call` bytes of an artifact in each call, and then breaks it.
class FlakyServer final : public v1::WorkerService::Service {
 public:
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::WorkerArtifactChunk>* writer) override {
    absl::MutexLock lock(&mutex_);
    if (compressed_by_grpc) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    if (!deflated.empty()) {
      EXPECT_TRUE(request->deflate());
      v1::WorkerArtifactChunk chunk;
      chunk.set_deflated(deflated);
      writer->Write(chunk);
      return grpc::Status::OK;
    }
    offsets_.push_back(request->offset());
    const auto begin = static_cast<size_t>(request->offset());
    const size_t most = offsets_.size() <= breaks ? bytes_per_call : bytes.size();
    const size_t end = std::min(begin + most, bytes.size());
    v1::WorkerArtifactChunk chunk;
    chunk.set_digest(request->digest());
    chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
    chunk.set_offset(static_cast<int64_t>(begin));
    for (size_t i = begin; i < end; i += 100) {
      chunk.set_data(bytes.substr(i, std::min<size_t>(100, end - i)));
      writer->Write(chunk);
      chunk.Clear();
    }
    if (end == bytes.size()) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
  }
  grpc::Status UploadArtifact(grpc::ServerContext*, grpc::ServerReader<v1::WorkerArtifactChunk>* in,
                              v1::UploadArtifactResponse*) override {
    bytes.clear();
    for (v1::WorkerArtifactChunk chunk; in->Read(&chunk);) bytes += chunk.data();
    return grpc::Status::OK;
  }
  std::vector<int64_t> offsets() {
    absl::MutexLock lock(&mutex_);
    return offsets_;
  }

  std::string bytes;
  size_t bytes_per_call = 300;
  size_t breaks = 0;  // calls that are broken
  bool compressed_by_grpc = false;
  std::string deflated;  // sent instead of `bytes`

 private:
  absl::Mutex mutex_;
  std::vector<int64_t> offsets_;
};

class ServerLinkTest : public ::testing::Test {
 protected:
  ServerLinkTest() {
    for (int i = 0; i < 300; ++i) absl::StrAppend(&server_.bytes, i % 10, "\n", i, ";");
    const std::string address = "unix:" + folder_ / "socket";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&server_);
    listening_ = builder.BuildAndStart();
    auto link = ConnectToServer(address, {});
    if (link.ok()) link_ = *std::move(link);
  }
  absl::StatusOr<std::string> Download() { return link_->Download(Sha256Of(server_.bytes)); }

  const TemporaryFolder folder_;
  FlakyServer server_;
  std::unique_ptr<grpc::Server> listening_;
  std::unique_ptr<ServerLink> link_;
};

TEST_F(ServerLinkTest, ABrokenDownloadContinuesWhereItStopped) {
  server_.breaks = 3;
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, Download());
  EXPECT_EQ(bytes, server_.bytes);
  EXPECT_THAT(server_.offsets(), ElementsAre(0, 300, 600, 900));
}

TEST_F(ServerLinkTest, ACallWithoutAnyByteEndsTheDownload) {
  server_.breaks = 100;
  server_.bytes_per_call = 0;
  EXPECT_THAT(Download(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_.offsets(), ElementsAre(0));
}

// A reference kernel may be another one in the next call.
TEST_F(ServerLinkTest, OnlyArtifactsAreResumed) {
  server_.breaks = 1;
  const std::string name = record::ReferenceName{DigestOf("w").ToHex(), "t"}.ToText();
  EXPECT_FALSE(link_->Download(name).ok());
  EXPECT_THAT(server_.offsets(), ElementsAre(0));
}

TEST_F(ServerLinkTest, ChunksMayBeCompressed) {
  server_.deflated = Deflate(server_.bytes);
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, Download());
  EXPECT_EQ(bytes, server_.bytes);
}

// A hostile server must not fill the memory of a worker.
TEST_F(ServerLinkTest, AChunkThatBecomesTooLongIsRefused) {
  server_.bytes = std::string(rpc::kChunkBytes + 1, 'a');
  server_.deflated = Deflate(server_.bytes);
  EXPECT_THAT(Download(), StatusIs(absl::StatusCode::kDataLoss,
                                   ::testing::HasSubstr("more than 262144 bytes")));
  server_.deflated = "damaged";
  EXPECT_THAT(Download(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ServerLinkTest, MessagesThatGrpcCompressedAreNotRead) {
  server_.bytes = std::string(100, 'a');
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, Download());
  EXPECT_EQ(bytes, server_.bytes);
  server_.compressed_by_grpc = true;
  EXPECT_FALSE(Download().ok());
}

// Servers refuse to decompress (common/rpc/listener.cc).
TEST_F(ServerLinkTest, UploadsAreNotCompressed) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto proxy, fault::TcpProxy::Start(folder_ / "socket"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto link, ConnectToServer(proxy->address(), {}));
  const std::string artifact(100000, 'a');
  EXPECT_THAT(link->Upload(Sha256Of(artifact), artifact), IsOk());
  EXPECT_EQ(server_.bytes, artifact);
  EXPECT_GT(proxy->bytes(), 100000);
}

// The link connects again once a minute only to find the reason.
TEST(TlsLinkTest, TheReasonOfAFailureIsRemembered) {
  const auto authority = [] {
    return *rpc::MakeAuthority("Test", absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1));
  };
  const rpc::ServerSecurity security{
      .identity = *rpc::IssueCertificate(authority(), {.common_name = "server.test",
                                                       .hosts = {"localhost"},
                                                       .server = true,
                                                       .not_before = absl::Now() - absl::Hours(1),
                                                       .not_after = absl::Now() + absl::Hours(1)})};
  rpc::ServerCertificates certificates(security);
  FlakyServer service;
  grpc::ServerBuilder builder;
  int port = 0;
  ASSERT_THAT(rpc::AddListener(builder, *rpc::Address::Parse("127.0.0.1:0"), certificates, &port),
              IsOk());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HONE_ASSERT_OK_AND_ASSIGN(const auto link, ConnectToServer(absl::StrCat("localhost:", port),
                                                             {.ca = authority().certificate}));
  const absl::Status first = link->Upload("a", "b");
  EXPECT_THAT(std::string(first.message()), ::testing::HasSubstr("that is not trusted here"));
  EXPECT_EQ(link->Upload("a", "b"), first);
}

TEST_F(ServerLinkTest, AnotherArtifactIsDataLoss) {
  EXPECT_THAT(link_->Download(Sha256Of("another")), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hone::agent

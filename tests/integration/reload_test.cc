// A server whose tokens and certificates change while it runs.

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

class ReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result made = RunProgram({"hone-server", "init", folder_ / "etc", "--host", "localhost"});
    ASSERT_EQ(made.code, 0) << made.errors;
    server_ = std::make_unique<Process>(std::vector<std::string>{
        "hone-server", "--listen", "localhost:0", "--store", folder_ / "hone.db", "--certificate",
        etc("server.pem"), "--key", etc("server-key.pem"), "--tokens", etc("tokens"), "--client-ca",
        etc("ca.pem"), "--client-certificates", "accept", "--revoked", etc("revoked"),
        "--ready-file", folder_ / "ready"});
    ASSERT_TRUE(Eventually(
        [&] { return std::filesystem::exists(folder_ / "ready") || !server_->Running(); }));
    ASSERT_TRUE(server_->Running()) << server_->Errors();
    const std::string ready = ReadFile(folder_ / "ready").value();
    for (absl::string_view line : absl::StrSplit(ready, '\n')) {
      if (absl::ConsumePrefix(&line, "listen ")) address_ = std::string(line);
    }
  }
  std::string etc(const std::string& name) const { return folder_ / ("etc/" + name); }
  // Lists the jobs with the token of this file.
  Result List(const std::string& token_file, const std::string& ca = "ca.pem") const {
    return RunProgram({"hone", "--server", address_, "--ca", etc(ca), "--token-file",
                       etc(token_file), "jobs", "list"});
  }
  // Lists the jobs with the certificate of this caller and without its token.
  Result ListAs(const std::string& name) const {
    return RunProgram({"hone", "--server", address_, "--ca", etc("ca.pem"), "--certificate",
                       etc(name + ".pem"), "--key", etc(name + "-key.pem"), "jobs", "list"});
  }
  // Waits until the server rejects the client's token.
  void ExpectWithdrawn() const {
    EXPECT_TRUE(Eventually([&] { return List("client.token").code != 0; }, absl::Seconds(20)));
    Transcript transcript("reload");
    transcript.Replace(address_, "ADDRESS");
    transcript.Add("hone jobs list", List("client.token"));
  }
  bool Logged(const std::string& words) const {
    return server_->Errors().find(words) != std::string::npos;
  }
  // Replaces the token file atomically, with private permissions.
  void WriteTokens(const std::string& text) const {
    ASSERT_THAT(WriteFileAtomically(etc("new tokens"), text), IsOk());
    std::filesystem::permissions(etc("new tokens"), std::filesystem::perms::owner_read |
                                                        std::filesystem::perms::owner_write);
    std::filesystem::rename(etc("new tokens"), etc("tokens"));
  }
  // The token file without the lines of this role.
  std::string TokensWithout(const std::string& role) const {
    std::string rest;
    const std::string tokens = ReadFile(etc("tokens")).value();
    for (absl::string_view line : absl::StrSplit(tokens, '\n')) {
      if (!absl::StartsWith(line, role)) absl::StrAppend(&rest, line, "\n");
    }
    return rest;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::string address_;
};

TEST_F(ReloadTest, RemovedTokenIsRejectedWithoutRestart) {
  ASSERT_EQ(List("client.token").code, 0) << List("client.token").errors;
  WriteTokens(TokensWithout("client"));
  ExpectWithdrawn();
  EXPECT_EQ(List("admin.token").code, 0) << "other tokens stay valid";
}

TEST_F(ReloadTest, RevokedCertificateIsRefusedWithoutRestart) {
  ASSERT_EQ(ListAs("client").code, 0) << ListAs("client").errors;
  const std::string before = ReadFile(etc("revoked")).value();
  ASSERT_THAT(WriteFileAtomically(etc("revoked"), "pi-07\n"), IsOk());
  EXPECT_TRUE(Eventually([&] { return Logged("revoked certificates were not replaced"); },
                         absl::Seconds(20)));
  EXPECT_TRUE(Logged("line 1")) << server_->Errors();
  EXPECT_EQ(ListAs("client").code, 0);
  ASSERT_THAT(WriteFileAtomically(etc("revoked"), before), IsOk());
  const Result unknown = RunProgram({"hone-server", "revoke", folder_ / "etc", "pi-07"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.errors.find("'pi-07' is unknown"), std::string::npos) << unknown.errors;
  const Result revoked = RunProgram({"hone-server", "revoke", folder_ / "etc", etc("client.pem")});
  EXPECT_EQ(revoked.code, 0) << revoked.errors;
  EXPECT_TRUE(Eventually([&] { return ListAs("client").code != 0; }, absl::Seconds(20)));
  EXPECT_NE(ListAs("client").errors.find("was revoked"), std::string::npos)
      << ListAs("client").errors;
  EXPECT_EQ(List("client.token").code, 0) << "only the certificate was revoked";
  EXPECT_EQ(ListAs("admin").code, 0) << ListAs("admin").errors;
  EXPECT_EQ(RunProgram({"hone-server", "revoke", folder_ / "etc", "admin"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return List("admin.token").code != 0; }, absl::Seconds(20)));
  EXPECT_NE(ListAs("admin").code, 0);
}

TEST_F(ReloadTest, UnreadableFileIsLoggedAndIgnored) {
  const std::string good = ReadFile(etc("tokens")).value();
  WriteTokens("client nonsense\n");
  EXPECT_TRUE(Eventually([&] { return Logged("tokens were not replaced"); }, absl::Seconds(20)));
  EXPECT_TRUE(Logged("line 1")) << server_->Errors();
  EXPECT_EQ(List("client.token").code, 0);
  WriteTokens(good);
  EXPECT_TRUE(Eventually([&] { return Logged("tokens were reloaded"); }, absl::Seconds(20)));
  EXPECT_FALSE(Logged("certificates were reloaded")) << server_->Errors();
}

// A stolen token must be withdrawable even if the server's certificate has expired.
TEST_F(ReloadTest, TokenIsRevokedDespiteABadCertificate) {
  ASSERT_THAT(WriteFileAtomically(etc("server.pem"), "-----BEGIN nonsense\n"), IsOk());
  WriteTokens(TokensWithout("client"));
  ExpectWithdrawn();
  EXPECT_EQ(List("admin.token").code, 0) << "the first certificate is still in use";
  EXPECT_TRUE(Logged("certificates were not replaced")) << server_->Errors();
}

TEST_F(ReloadTest, SighupReloads) {
  server_->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return Logged("certificates were reloaded"); }, absl::Seconds(20)));
  EXPECT_TRUE(Logged("tokens were reloaded"));
  EXPECT_TRUE(server_->Running());
  EXPECT_EQ(List("client.token").code, 0);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(absl::Seconds(20)), 0);
}

TEST_F(ReloadTest, NewCertificateIsUsedWithoutRestart) {
  ASSERT_EQ(RunProgram({"hone-server", "init", folder_ / "etc/new", "--host", "localhost"}).code,
            0);
  ASSERT_NE(List("client.token", "new/ca.pem").code, 0)
      << "the server does not use the new authority yet";
  // The files are replaced one by one. In between, the key does not match the certificate and is
  // not used.
  std::filesystem::rename(etc("new/server-key.pem"), etc("server-key.pem"));
  EXPECT_TRUE(
      Eventually([&] { return Logged("certificates were not replaced"); }, absl::Seconds(20)));
  EXPECT_EQ(List("client.token").code, 0);
  std::filesystem::rename(etc("new/server.pem"), etc("server.pem"));
  EXPECT_TRUE(
      Eventually([&] { return List("client.token", "new/ca.pem").code == 0; }, absl::Seconds(20)))
      << server_->Errors();
  EXPECT_NE(List("client.token").code, 0);
}

}  // namespace
}  // namespace hone::integration

// Encrypted connections: which callers are accepted, and which errors both sides report otherwise.

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/certificate.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/listener.h"
#include "common/rpc/revocation.h"
#include "common/rpc/secret.h"
#include "common/rpc/status.h"
#include "common/rpc/tls_probe.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::rpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Duration kYear = absl::Hours(24 * 365);

KeyPair Authority(const std::string& name = "Test") {
  return *MakeAuthority(name, absl::Now() - kYear, absl::Now() + kYear);
}

KeyPair ServerPair(const KeyPair& authority,
                   std::vector<std::string> hosts = {"localhost", "127.0.0.1"},
                   absl::Duration lifetime = kYear) {
  return *IssueCertificate(authority, {.common_name = "server.test",
                                       .hosts = std::move(hosts),
                                       .server = true,
                                       .not_before = absl::Now() - kYear,
                                       .not_after = absl::Now() + lifetime});
}

KeyPair ClientPair(const KeyPair& authority, const Identity& identity,
                   absl::Duration lifetime = kYear, const std::string& token_hash = "") {
  return *IssueCertificate(authority, {.common_name = "pi",
                                       .uri = IdentityUri(identity),
                                       .token_hash = token_hash,
                                       .not_before = absl::Now() - kYear,
                                       .not_after = absl::Now() + lifetime});
}

// Answers every call with the caller's name, or with the reason why the caller is unknown.
class WhoService final : public grpc::CallbackGenericService {
 public:
  explicit WhoService(std::shared_ptr<const TokenTable> tokens) : authenticator_(tokens) {}
  Authenticator& authenticator() { return authenticator_; }
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Answer final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Answer(const absl::Status& status) { Finish(ToGrpc(status)); }
      void OnDone() override { delete this; }
    };
    const auto caller = authenticator_.Identify(*context);
    return new Answer(caller.ok() ? absl::NotFoundError(IdentityUri(*caller)) : caller.status());
  }

 private:
  Authenticator authenticator_;
};

class TlsTest : public ::testing::Test {
 protected:
  void Serve(const ServerSecurity& security, std::shared_ptr<const TokenTable> tokens = nullptr) {
    service_ = std::make_unique<WhoService>(std::move(tokens));
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.RegisterCallbackGenericService(service_.get());
    certificates_ = std::make_unique<ServerCertificates>(security);
    ASSERT_THAT(AddListener(builder, *Address::Parse("127.0.0.1:0"), *certificates_, &port_),
                IsOk());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = absl::StrCat("localhost:", port_);
  }
  // Returns the status of a call: NotFound with the caller's URI if the call arrived.
  absl::Status Call(const ChannelSecurity& security) {
    auto channel = CreateChannel(address_, security);
    if (!channel.ok()) return channel.status();
    grpc::GenericStub stub(*channel);
    grpc::ClientContext context;
    SetDeadline(context, absl::Seconds(20));
    grpc::CompletionQueue queue;
    grpc::Slice slice("");
    grpc::ByteBuffer request(&slice, 1), response;
    auto call = stub.PrepareUnaryCall(&context, "/test/Who", request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return FromGrpc(status);
  }
  absl::Status Probe(const ChannelSecurity& security) {
    return ProbeTls(address_, security, absl::Seconds(20)).status();
  }
  ~TlsTest() override {
    if (server_ != nullptr) server_->Shutdown();
  }

  const KeyPair authority_ = Authority();
  std::unique_ptr<WhoService> service_;
  std::unique_ptr<ServerCertificates> certificates_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::string address_;
};

TEST_F(TlsTest, TokenIdentifiesTheCaller) {
  auto tokens = std::make_shared<const TokenTable>(
      *TokenTable::Parse(TokenLine({"ann", Role::kClient}, "secret")));
  Serve({.identity = ServerPair(authority_)}, tokens);
  const absl::Status known = Call({.ca = authority_.certificate, .token = "secret"});
  EXPECT_EQ(known, absl::NotFoundError("hone://client/ann"));
  EXPECT_THAT(Call({.ca = authority_.certificate, .token = "guess"}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("does not know this token"), Not(HasSubstr("guess")))));
  EXPECT_THAT(Call({.ca = authority_.certificate}),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("--token-file")));
}

TEST_F(TlsTest, ARevokedCertificateIsRefusedEvenWithAToken) {
  auto tokens = std::make_shared<const TokenTable>(
      *TokenTable::Parse(TokenLine({"pi-07", Role::kWorker}, "secret")));
  Serve({.identity = ServerPair(authority_), .client_ca = authority_.certificate}, tokens);
  const KeyPair lost = ClientPair(authority_, {"pi-07", Role::kWorker});
  const KeyPair kept = ClientPair(authority_, {"pi-07", Role::kWorker});
  const auto call = [&](const KeyPair& identity, const std::string& token) {
    return Call({.ca = authority_.certificate, .identity = identity, .token = token});
  };
  const absl::Status admitted = absl::NotFoundError("hone://worker/pi-07");
  EXPECT_EQ(call(lost, ""), admitted);
  const std::string serial = DescribeCertificate(lost.certificate)->serial;
  ASSERT_NE(serial, "");
  ASSERT_NE(serial, DescribeCertificate(kept.certificate)->serial);
  service_->authenticator().SetRevoked(
      std::make_shared<const RevocationList>(*RevocationList::Parse(serial)));
  for (const std::string token : {"", "secret"}) {
    EXPECT_THAT(call(lost, token), StatusIs(absl::StatusCode::kUnauthenticated,
                                            AllOf(HasSubstr(serial), HasSubstr("was revoked"))));
    EXPECT_EQ(call(kept, token), admitted) << "another certificate of the same caller";
  }
  EXPECT_EQ(Call({.ca = authority_.certificate, .token = "secret"}), admitted);
  service_->authenticator().SetRevoked(nullptr);
  EXPECT_EQ(call(lost, ""), admitted);
}

TEST_F(TlsTest, ACertificateIsRevokedWithItsToken) {
  const auto table = [](const std::string& token) {
    return std::make_shared<const TokenTable>(
        *TokenTable::Parse(TokenLine({"pi-07", Role::kWorker}, token)));
  };
  Serve({.identity = ServerPair(authority_), .client_ca = authority_.certificate}, table("first"));
  const Identity pi{"pi-07", Role::kWorker};
  const KeyPair with_token = ClientPair(authority_, pi, kYear, HashToken("first"));
  const KeyPair without = ClientPair(authority_, pi);
  EXPECT_EQ(DescribeCertificate(with_token.certificate)->uri, IdentityUri(pi));
  EXPECT_EQ(DescribeCertificate(with_token.certificate)->token_hash, HashToken("first"));
  const auto call = [&](const KeyPair& identity) {
    return Call({.ca = authority_.certificate, .identity = identity});
  };
  const absl::Status admitted = absl::NotFoundError(IdentityUri(pi));
  EXPECT_EQ(call(with_token), admitted);
  service_->authenticator().SetTokens(table("second"));
  EXPECT_THAT(call(with_token), StatusIs(absl::StatusCode::kUnauthenticated,
                                         HasSubstr("made with a token that was withdrawn")));
  EXPECT_EQ(call(without), admitted) << "it does not depend on a token";
  service_->authenticator().SetTokens(nullptr);
  EXPECT_EQ(call(with_token), admitted) << "the server knows no tokens at all";
}

TEST_F(TlsTest, ACertificateIsReplacedWhileTheServerServes) {
  Serve({.identity = ServerPair(authority_)});
  HONE_ASSERT_OK_AND_ASSIGN(const auto before,
                            ProbeTls(address_, {.ca = authority_.certificate}, absl::Seconds(20)));
  const KeyPair other = Authority("Other");
  ASSERT_THAT(certificates_->Replace({.identity = ServerPair(other)}), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto after,
                            ProbeTls(address_, {.ca = other.certificate}, absl::Seconds(20)));
  EXPECT_EQ(before.server.issuer, "Test");
  EXPECT_EQ(after.server.issuer, "Other");
  EXPECT_THAT(Call({.ca = other.certificate}), StatusIs(absl::StatusCode::kUnauthenticated))
      << "the call arrives, but the caller is unknown";
  EXPECT_FALSE(Probe({.ca = authority_.certificate}).ok());
}

TEST_F(TlsTest, RemovedAuthorityAdmitsNobody) {
  const KeyPair old = Authority("Old");
  const ServerSecurity security{.identity = ServerPair(authority_),
                                .client_ca = old.certificate + authority_.certificate,
                                .require_certificates = true};
  Serve(security);
  const ChannelSecurity caller{.ca = authority_.certificate,
                               .identity = ClientPair(old, {"pi", Role::kWorker})};
  EXPECT_EQ(Call(caller), absl::NotFoundError("hone://worker/pi"));
  ServerSecurity now = security;
  now.client_ca = authority_.certificate;
  ASSERT_THAT(certificates_->Replace(now), IsOk());
  EXPECT_FALSE(Probe(caller).ok());
  EXPECT_THAT(Probe({.ca = authority_.certificate,
                     .identity = ClientPair(authority_, {"pi", Role::kWorker})}),
              IsOk());
}

TEST_F(TlsTest, ClientCertificatesCannotBeEnabledWhileServing) {
  Serve({.identity = ServerPair(authority_)});
  EXPECT_THAT(certificates_->Replace(
                  {.identity = ServerPair(authority_), .client_ca = authority_.certificate}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(certificates_->Replace({}), StatusIs(absl::StatusCode::kFailedPrecondition))
      << "encryption cannot be switched off";
  EXPECT_THAT(Probe({.ca = authority_.certificate}), IsOk()) << "the server continues as before";
}

TEST_F(TlsTest, CertificateIdentifiesTheCaller) {
  Serve({.identity = ServerPair(authority_),
         .client_ca = authority_.certificate,
         .require_certificates = true});
  EXPECT_EQ(Call({.ca = authority_.certificate,
                  .identity = ClientPair(authority_, {"pi-07", Role::kWorker})}),
            absl::NotFoundError("hone://worker/pi-07"));
}

TEST_F(TlsTest, TheProbeDescribesAGoodServer) {
  Serve({.identity = ServerPair(authority_)});
  HONE_ASSERT_OK_AND_ASSIGN(const auto found,
                            ProbeTls(address_, {.ca = authority_.certificate}, absl::Seconds(20)));
  EXPECT_EQ(found.server.subject, "server.test");
  EXPECT_EQ(found.server.issuer, "Test");
  EXPECT_THAT(found.server.hosts, ElementsAre("localhost", "127.0.0.1"));
  EXPECT_EQ(found.protocol, "TLSv1.3");
}

TEST_F(TlsTest, AnExpiredServerIsRefused) {
  Serve({.identity = ServerPair(authority_, {"localhost"}, -absl::Hours(48))});
  const ChannelSecurity client{.ca = authority_.certificate};
  EXPECT_THAT(Call(client), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Probe(client), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("has expired on 2"),
                                            HasSubstr("this machine's clock says 2"))));
}

// A machine whose clock is wrong sees the same: every message names both times.
TEST(CertificateTest, TheLifetimeIsComparedWithTheClock) {
  const absl::Time begin = absl::FromUnixSeconds(1'700'000'000);
  const CertificateFacts facts{
      .subject = "pi-07", .not_before = begin, .not_after = begin + absl::Hours(24)};
  EXPECT_THAT(CheckLifetime("the certificate", facts, begin), IsOk());
  EXPECT_EQ(CheckLifetime("the certificate", facts, absl::UnixEpoch()),
            absl::FailedPreconditionError(
                "the certificate (pi-07) is not valid before 2023-11-14 22:13 UTC, and this "
                "machine's clock says 1970-01-01 00:00 UTC: set the clock, for example with NTP"));
  EXPECT_EQ(CheckLifetime("the certificate", facts, begin + 100 * kYear),
            absl::FailedPreconditionError(
                "the certificate (pi-07) has expired on 2023-11-15 22:13 UTC, and this machine's "
                "clock says 2123-10-21 22:13 UTC: set the clock if it is wrong, or else get a new "
                "certificate"));
}

TEST_F(TlsTest, ACertificateOfTheFutureNamesTheClock) {
  const auto later = [&](const CertificateRequest& request) {
    CertificateRequest future = request;
    future.not_before = absl::Now() + kYear;
    future.not_after = absl::Now() + 2 * kYear;
    return *IssueCertificate(authority_, future);
  };
  const KeyPair server =
      later({.common_name = "server.test", .hosts = {"localhost"}, .server = true});
  Serve({.identity = server});
  for (const absl::Status& why :
       {Probe({.ca = authority_.certificate}),
        ExplainCallError(Call({.ca = authority_.certificate}), address_,
                         {.ca = authority_.certificate}, absl::Seconds(20))}) {
    EXPECT_THAT(std::string(why.message()),
                AllOf(HasSubstr("the server's certificate (server.test) is not valid before 2"),
                      HasSubstr("this machine's clock says 2")));
  }

  // The server judges our certificate by its own clock.
  const ChannelSecurity early{
      .ca = authority_.certificate,
      .identity = later({.common_name = "pi", .uri = IdentityUri({"pi", Role::kWorker})})};
  Serve({.identity = ServerPair(authority_),
         .client_ca = authority_.certificate,
         .require_certificates = true});
  EXPECT_THAT(std::string(Probe(early).message()),
              HasSubstr("our own certificate (pi) is not valid before 2"));
  // The reason is named even while there is no server.
  const absl::Status unreachable = ExplainCallError(absl::UnavailableError("Connection refused"),
                                                    "localhost:1", early, absl::ZeroDuration());
  EXPECT_THAT(
      unreachable,
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("connection refused"),
                     HasSubstr("besides, our own certificate (pi) is not valid before 2"))));
}

TEST_F(TlsTest, AnAuthorityOfTheFutureNamesTheClock) {
  const KeyPair authority = *MakeAuthority("Later", absl::Now() + kYear, absl::Now() + 2 * kYear);
  Serve({.identity = ServerPair(authority)});
  EXPECT_THAT(std::string(Probe({.ca = authority.certificate}).message()),
              HasSubstr("the certificate of the server's authority (Later) is not valid before 2"));
}

TEST_F(TlsTest, AServerOfAnUnknownAuthorityIsRefused) {
  Serve({.identity = ServerPair(authority_)});
  const ChannelSecurity client{.ca = Authority("Other").certificate};
  EXPECT_THAT(Call(client), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(client).message()),
              HasSubstr("by an authority that is not trusted here (Test)"));
}

TEST_F(TlsTest, AServerOfAnotherNameIsRefused) {
  Serve({.identity = ServerPair(authority_, {"hone.internal"})});
  const ChannelSecurity client{.ca = authority_.certificate};
  EXPECT_THAT(Call(client), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(client).message()), HasSubstr("not for localhost but for hone.i"));
  const ChannelSecurity told{.ca = authority_.certificate, .server_name = "hone.internal"};
  EXPECT_THAT(Call(told), StatusIs(absl::StatusCode::kUnauthenticated)) << "the call arrived";
  EXPECT_THAT(Probe(told), IsOk());
}

TEST_F(TlsTest, AMissingClientCertificateIsReported) {
  Serve({.identity = ServerPair(authority_),
         .client_ca = authority_.certificate,
         .require_certificates = true});
  const ChannelSecurity client{.ca = authority_.certificate};
  EXPECT_THAT(Call(client), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(client).message()),
              HasSubstr("asks for a certificate, and none was given"));
}

TEST_F(TlsTest, ACallersExpiredOrForeignCertificateIsRefused) {
  Serve({.identity = ServerPair(authority_),
         .client_ca = authority_.certificate,
         .require_certificates = true});
  const Identity pi{"pi-07", Role::kWorker};
  const ChannelSecurity expired{.ca = authority_.certificate,
                                .identity = ClientPair(authority_, pi, -absl::Hours(48))};
  EXPECT_THAT(Call(expired), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(expired).message()), HasSubstr("expired"));
  const ChannelSecurity foreign{.ca = authority_.certificate,
                                .identity = ClientPair(Authority("Other"), pi)};
  EXPECT_THAT(Call(foreign), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(foreign).message()), HasSubstr("does not accept our certificate"));
}

TEST_F(TlsTest, RejectsACertificateWithoutAName) {
  Serve({.identity = ServerPair(authority_), .client_ca = authority_.certificate});
  const absl::Status unnamed =
      Call({.ca = authority_.certificate, .identity = ServerPair(authority_)});
  // The certificate is for servers only. Either the handshake rejects it, or it names no caller.
  EXPECT_THAT(unnamed.code(),
              ::testing::AnyOf(absl::StatusCode::kUnavailable, absl::StatusCode::kUnauthenticated));
}

TEST_F(TlsTest, ReportsAPlaintextServer) {
  Serve({});
  const ChannelSecurity client{.ca = authority_.certificate};
  EXPECT_THAT(Call(client), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(Probe(client).message()), HasSubstr("not speak TLS on this port"));
}

TEST_F(TlsTest, UnreachableServerIsUnavailable) {
  Serve({.identity = ServerPair(authority_)});
  server_->Shutdown();
  server_.reset();
  EXPECT_THAT(Probe({.ca = authority_.certificate}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsTest, RejectsProtocolsBeforeTls12) {
  Serve({.identity = ServerPair(authority_)});
  for (const auto& [version, taken] :
       {std::pair{TLS1_1_VERSION, false}, std::pair{TLS1_2_VERSION, true}}) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    const unsigned char http2[] = "\x02h2";
    SSL_CTX_set_alpn_protos(context, http2, 3);
    BIO* bio = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(bio, address_.c_str());
    EXPECT_EQ(BIO_do_handshake(bio) == 1, taken) << version;
    BIO_free_all(bio);
    SSL_CTX_free(context);
  }
}

TEST(LoadSecurityTest, ErrorsDoNotShowFileContents) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& content, int mode = 0600) {
    const std::string path = folder / name;
    std::ofstream(path) << content;
    chmod(path.c_str(), mode);
    return path;
  };
  const KeyPair authority = Authority();
  const Identity pi{"pi", Role::kWorker};
  const KeyPair pair = ClientPair(authority, pi);
  const KeyPair other = ClientPair(authority, pi);
  const std::string ca = file("ca", authority.certificate);
  const std::string certificate = file("cert", pair.certificate);
  const std::string key = file("key", pair.key);
  const struct {
    SecuritySources sources;
    std::string says;
  } cases[] = {
      {{.ca = ca, .certificate = certificate}, "belong together"},
      {{.certificate = certificate, .key = key}, "a certificate needs TLS"},
      {{.ca = ca, .certificate = certificate, .key = other.key},
       "the key does not belong to the certificate"},
      {{.ca = ca, .certificate = certificate, .key = file("open", pair.key, 0644)}, "chmod 600"},
      {{.ca = file("empty", "nothing")}, "has no PEM text"},
      {{.ca = folder / "absent"}, "/absent"},
      {{.token_file = file("t", "tok3n", 0644)}, "chmod 600"},
      {{.token_file = file("none", "\n")}, "is empty"},
      {{.token_file = file("two", "tok3n tok3n")}, "blanks"},
      {{.token_file = file("tok", "tok3n"), .token = "tok3n"}, "give one of them"},
  };
  for (const auto& test : cases) {
    const auto loaded = LoadSecurity(test.sources);
    ASSERT_FALSE(loaded.ok()) << test.says;
    const std::string message(loaded.status().message());
    EXPECT_THAT(message, HasSubstr(test.says));
    EXPECT_THAT(message, Not(HasSubstr("BEGIN")));
    EXPECT_THAT(message, Not(HasSubstr("tok3n")));
  }
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto good,
      LoadSecurity(
          {.ca = ca, .certificate = certificate, .key = key, .token_file = file("g", "tok3n\n")}));
  EXPECT_EQ(good.token, "tok3n");
  EXPECT_THAT(pair.key, HasSubstr(good.identity.key));
}

TEST(CertificateTest, DescribesHostsAndIdentity) {
  const KeyPair authority = Authority();
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto server,
      DescribeCertificate(ServerPair(authority, {"a.b", "10.0.0.7", "::1"}).certificate));
  EXPECT_THAT(server.hosts, ElementsAre("a.b", "10.0.0.7", "::1"));
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto worker,
      DescribeCertificate(ClientPair(authority, {"pi-*", Role::kWorker}).certificate));
  EXPECT_EQ(*IdentityFromUri(worker.uri), (Identity{"pi-*", Role::kWorker}));
  EXPECT_FALSE(DescribeCertificate("no pem").ok());
}

TEST(CertificateTest, RejectsNamesWithInjectedEntries) {
  const KeyPair authority = Authority();
  for (const char* host : {"a,DNS:b", "a b", "", "a\nb"}) {
    EXPECT_THAT(IssueCertificate(authority, {.common_name = "x",
                                             .hosts = {host},
                                             .not_before = absl::Now(),
                                             .not_after = absl::Now() + kYear}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << host;
  }
}

TEST(CertificateTest, ForeignUrisHaveNoIdentity) {
  for (const char* uri :
       {"", "hone://", "hone://worker", "hone://worker/", "hone://king/x", "spiffe://worker/x"}) {
    EXPECT_FALSE(IdentityFromUri(uri).ok()) << uri;
  }
}

TEST(GrpcLogTest, ExplainsFailedHandshakes) {
  EXPECT_THAT(ExplainGrpcMessage("Handshake failed with fatal error SSL_ERROR_SSL: "
                                 "error:0A000086:SSL routines::certificate verify failed"),
              HasSubstr("expired, or was issued by an authority"));
  EXPECT_THAT(ExplainGrpcMessage("Handshake failed with fatal error SSL_ERROR_SSL: "
                                 "error:0A0000C7:SSL routines::peer did not return a certificate"),
              HasSubstr("sent no certificate"));
}

TEST(GrpcLogTest, OtherMessagesKeepTextAndCause) {
  EXPECT_EQ(ExplainGrpcMessage("something else"), "grpc: something else");
  EXPECT_EQ(ExplainGrpcMessage("UNKNOWN:Failed accept4 {file:\"tcp.cc\", errno:24, "
                               "os_error:\"Too many open files\", syscall:\"accept4\"}"),
            "grpc: UNKNOWN:Failed accept4: Too many open files");
  EXPECT_EQ(ExplainGrpcMessage("UNKNOWN:No address added out of total 1 resolved for 'x:1' {}"), "")
      << "the program says why it cannot listen";
}

}  // namespace
}  // namespace hone::rpc

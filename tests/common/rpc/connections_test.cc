// The table of connections, and a listener that accepts no more than it allows.

#include "common/rpc/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class ConnectionsTest : public ::testing::Test {
 protected:
  // Adds a connection from a port of a host. Returns its number, or 0.
  int64_t Add(const std::string& host, int port) {
    const std::string peer = absl::StrCat(host, ":", port);
    return connections_.Add(host, peer, [this, peer] { ended_.push_back(peer); }).value_or(0);
  }

  FakeClock clock_;
  std::vector<std::string> ended_;
  std::map<std::string, int> refused_;  // by reason and host
  Connections connections_{&clock_,
                           {.all = 4, .of_host = 2, .grace = absl::Seconds(10)},
                           [this](absl::string_view reason, const std::string& host) {
                             ++refused_[absl::StrCat(reason, " ", host)];
                           }};
};

TEST_F(ConnectionsTest, BothLimitsHold) {
  EXPECT_NE(Add("10.0.0.1", 1), 0);
  const int64_t second = Add("10.0.0.1", 2);
  EXPECT_EQ(Add("10.0.0.1", 3), 0);
  EXPECT_THAT(refused_, ElementsAre(Pair("connections_of_host 10.0.0.1", 1)));
  EXPECT_NE(Add("10.0.0.2", 1), 0);
  EXPECT_NE(Add("10.0.0.3", 1), 0);
  EXPECT_EQ(Add("10.0.0.4", 1), 0);
  EXPECT_THAT(refused_, ElementsAre(Pair("connections 10.0.0.4", 1),
                                    Pair("connections_of_host 10.0.0.1", 1)));
  connections_.Remove(second);
  connections_.Remove(second);
  EXPECT_NE(Add("10.0.0.1", 3), 0);
  EXPECT_EQ(connections_.counts().unused, 4);
  EXPECT_TRUE(ended_.empty()) << "all of them are new";
}

TEST_F(ConnectionsTest, OldConnectionsOfUnknownCallersMakeRoom) {
  Add("10.0.0.1", 1);
  Add("10.0.0.1", 2);
  Add("10.0.0.2", 1);
  Add("10.0.0.3", 1);
  connections_.NoteCaller("ipv4:10.0.0.1:1");
  connections_.NoteCaller("ipv4:10.0.0.9:1");  // unknown
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(Add("10.0.0.1", 3), 0);
  clock_.Advance(absl::Seconds(1));
  EXPECT_NE(Add("10.0.0.1", 3), 0);
  EXPECT_THAT(ended_, ElementsAre("10.0.0.1:2")) << "one of the same host";
  EXPECT_NE(Add("10.0.0.4", 1), 0);
  EXPECT_NE(Add("10.0.0.4", 2), 0);
  EXPECT_THAT(ended_, ElementsAre("10.0.0.1:2", "10.0.0.2:1", "10.0.0.3:1"));
  EXPECT_EQ(Add("10.0.0.5", 1), 0) << "the others are used or new";
  EXPECT_EQ(connections_.counts().used, 1);
  EXPECT_EQ(connections_.counts().unused, 3);
}

TEST_F(ConnectionsTest, APortThatIsUsedAgainIsAnotherConnection) {
  const int64_t first = Add("fd00::/64", 1);
  const int64_t second = Add("fd00::/64", 1);
  connections_.Remove(first);
  connections_.NoteCaller("ipv6:fd00::/64:1");
  EXPECT_EQ(connections_.counts().used, 1);
  connections_.Remove(second);
  EXPECT_EQ(connections_.counts().used, 0);
  EXPECT_EQ(connections_.counts().unused, 0);
}

TEST_F(ConnectionsTest, PeersHaveTheFormOfGrpc) {
  connections_.Add("fd00:0:0:7::/64", "[fd00:0:0:7::1]:5000", [] {});
  connections_.NoteCaller("ipv6:%5Bfd00:0:0:7::1%5D:5000");
  EXPECT_EQ(connections_.counts().used, 1);
}

// gRPC's text of a link-local address contains the number of the interface.
TEST_F(ConnectionsTest, LinkLocalPeersAreKnown) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(5000);
  v6.sin6_scope_id = 25;
  ASSERT_EQ(inet_pton(AF_INET6, "fe80::1", &v6.sin6_addr), 1);
  const PeerNames names = PeerNamesOf(address);
  EXPECT_EQ(names.host, "fe80::%25/64");
  EXPECT_EQ(names.peer, "[fe80::1%25]:5000");
  connections_.Add(names.host, names.peer, [] {});
  connections_.NoteCaller("ipv6:%5Bfe80::1%2525%5D:5000");
  EXPECT_EQ(connections_.counts().used, 1);
}

// A thousand workers behind one NAT, which connect again at the same time.
TEST(ConnectionLimitsTest, AFleetFitsBehindOneAddress) {
  FakeClock clock;
  Connections connections(&clock, ConnectionLimits(), nullptr);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(connections.Add("10.0.0.1", absl::StrCat("10.0.0.1:", i), [] {}).has_value());
  }
}

// A TCP connection that sends nothing.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawConnection() { close(socket_); }
  // Whether the server ends the connection within `limit`.
  bool IsEnded(absl::Duration limit) {
    const absl::Time until = absl::Now() + limit;
    char buffer[256];
    while (absl::Now() < until) {
      pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 10) == 1 && read(socket_, buffer, sizeof buffer) <= 0) return true;
    }
    return false;
  }

 private:
  const int socket_;
};

class AcceptorTest : public ::testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits, const std::string& address = "127.0.0.1:0") {
    connections_ = std::make_unique<Connections>(&clock_, limits, nullptr);
    HONE_ASSERT_OK_AND_ASSIGN(
        acceptor_, Acceptor::Listen(*Address::Parse(address), security_, connections_.get()));
    ASSERT_GT(acceptor_->port(), 0);
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.RegisterCallbackGenericService(&service_);
    acceptor_->AddTo(builder, certificates_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    acceptor_->Start();
  }
  void TearDown() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
    if (server_ != nullptr) server_->Shutdown();
  }
  bool Connects() {
    static const auto first = CreateChannel("127.0.0.1:1", {});  // which the process keeps
    const auto channel = CreateChannel(absl::StrCat("127.0.0.1:", acceptor_->port()), {});
    return (*channel)->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  }
  bool BecomesOpen(int64_t unused) {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (connections_->counts().unused != unused && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    return connections_->counts().unused == unused;
  }

  ServerSecurity security_;
  ServerCertificates certificates_{security_};
  grpc::CallbackGenericService service_;  // gRPC starts no server without one
  SteadyClock clock_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(AcceptorTest, GrpcGetsTheConnections) {
  Serve({});
  EXPECT_TRUE(Connects());
  EXPECT_TRUE(BecomesOpen(0)) << "its end is noticed";
}

TEST_F(AcceptorTest, ItListensOnEveryAddressOfAHost) {
  Serve({}, "localhost:0");
  EXPECT_TRUE(Connects());
}

TEST_F(AcceptorTest, AllAddressesAreListenedOn) {
  security_.insecure = true;
  Serve({}, "0.0.0.0:0");
  EXPECT_TRUE(Connects());
}

TEST_F(AcceptorTest, ConnectionsOverTheLimitAreClosed) {
  Serve({.all = 100, .of_host = 3, .grace = absl::Hours(1)});
  {
    RawConnection first(acceptor_->port()), second(acceptor_->port()), third(acceptor_->port());
    ASSERT_TRUE(BecomesOpen(3));
    RawConnection fourth(acceptor_->port());
    EXPECT_TRUE(fourth.IsEnded(absl::Seconds(20)));
    EXPECT_FALSE(first.IsEnded(absl::Milliseconds(50)));
  }
  EXPECT_TRUE(BecomesOpen(0));
  EXPECT_TRUE(Connects());
}

TEST_F(AcceptorTest, AnIdleConnectionMakesRoom) {
  Serve({.all = 2, .of_host = 2, .grace = absl::ZeroDuration()});
  RawConnection first(acceptor_->port()), second(acceptor_->port());
  ASSERT_TRUE(BecomesOpen(2));
  EXPECT_TRUE(Connects());
  EXPECT_TRUE(first.IsEnded(absl::Seconds(20)));
}

TEST_F(AcceptorTest, AnAddressInUseIsNamed) {
  Serve({});
  const Address used{.host = "127.0.0.1", .port = acceptor_->port()};
  EXPECT_THAT(Acceptor::Listen(used, security_, connections_.get()),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(Acceptor::Listen({.host = "192.0.2.1", .port = 7070}, security_, connections_.get()),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace hone::rpc

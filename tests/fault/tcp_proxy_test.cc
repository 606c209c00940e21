#include "tests/fault/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::fault {
namespace {

// One connection through the proxy, with access to both ends.
class TcpProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_ / "s";
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(listen(listener_, 1), 0);
    proxy_ = TcpProxy::Start(path).value();
    const std::string address = proxy_->address();
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.find(':') + 1), &port));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    server_ = accept(listener_, nullptr, nullptr);
    ASSERT_GE(server_, 0);
  }
  void TearDown() override {
    for (const int fd : {client_, server_, listener_}) close(fd);
  }
  static void Say(int fd, const std::string& words) {
    ASSERT_EQ(send(fd, words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  // Returns what arrives within that time, or "the end" if the connection is broken.
  static std::string Hear(int fd, int wait_ms = 5000) {
    pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, wait_ms) == 0) return "";
    char bytes[64];
    const ssize_t n = read(fd, bytes, sizeof(bytes));
    return n > 0 ? std::string(bytes, static_cast<size_t>(n)) : "the end";
  }

  TemporaryFolder folder_;
  std::unique_ptr<TcpProxy> proxy_;
  int listener_ = -1, client_ = -1, server_ = -1;
};

TEST_F(TcpProxyTest, BytesPassBothWays) {
  Say(client_, "question");
  EXPECT_EQ(Hear(server_), "question");
  Say(server_, "answer");
  EXPECT_EQ(Hear(client_), "answer");
}

TEST_F(TcpProxyTest, ACutResetsBothEnds) {
  proxy_->Cut();
  EXPECT_EQ(Hear(client_), "the end");
  EXPECT_EQ(Hear(server_), "the end");
}

TEST_F(TcpProxyTest, BlackHoleHoldsBytesUntilItEnds) {
  proxy_->SetWeather({.black_hole = true});
  Say(client_, "question");
  EXPECT_EQ(Hear(server_, 100), "");
  proxy_->SetWeather({});
  EXPECT_EQ(Hear(server_), "question");
}

TEST_F(TcpProxyTest, DelaysBytes) {
  proxy_->SetWeather({.delay = absl::Milliseconds(150)});
  const absl::Time begin = absl::Now();
  Say(client_, "question");
  EXPECT_EQ(Hear(server_), "question");
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(150));
}

TEST_F(TcpProxyTest, SwallowedRepliesCloseTheConnection) {
  proxy_->SetWeather({.swallow_replies = true});
  Say(client_, "question");
  EXPECT_EQ(Hear(server_), "question");
  Say(server_, "answer");
  EXPECT_EQ(Hear(client_, 100), "");
  proxy_->SetWeather({});
  EXPECT_EQ(Hear(client_), "the end");
}

}  // namespace
}  // namespace hone::fault

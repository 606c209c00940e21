// The store of a server cannot be written for longer than every time limit for retries, because its
// disk is full or its database is away. The job in progress waits and is finished, the client that
// waits for it sees the reason, and nothing that was acknowledged is lost.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/server/store/postgres_server.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int kTrials = 40;
// Longer than the store, the server or a call tries anything again (at most 15 s). tests/nightly.sh
// makes it longer.
absl::Duration OutageTime() {
  int seconds = 20;
  if (const char* const given = std::getenv("HONE_OUTAGE_SECONDS"); given != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(given, &seconds)) << given;
  }
  return absl::Seconds(seconds);
}

class OutageTest : public ::testing::Test {
 protected:
  void Start(const std::string& store) {
    const std::string ready = folder_ / "ready";
    server_ = std::make_unique<Process>(std::vector<std::string>{
        "hone-server", "--listen", address_, "--store", store, "--ready-file", ready,
        "--metrics-listen", absl::StrCat("localhost:", metrics_port_)});
    ASSERT_TRUE(Eventually([&] {
      return RunProgram({"/usr/bin/test", "-e", ready}).code == 0 || !server_->Running();
    }));
    ASSERT_TRUE(server_->Running()) << server_->Errors();
    worker_ = std::make_unique<Process>(std::vector<std::string>{
        "hone-worker", "--server", address_, "--name", "w", "--state-dir", folder_ / "state"});
    tune_ = std::make_unique<Process>(std::vector<std::string>{"hone", "--server", address_, "tune",
                                                               "matmul", "m=64", "n=64", "k=64",
                                                               "--trials", absl::StrCat(kTrials)});
    ASSERT_TRUE(Eventually([&] {
      const nlohmann::json job = Job();
      return job.is_object() && job["trials"] >= 8;
    })) << tune_->Errors()
        << server_->Errors();
    before_ = Records();
    ASSERT_GE(before_.size(), 8u);
  }
  nlohmann::json Ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"hone", "--server", address_});
    words.push_back("--json");
    return OneLineOfJson(RunProgram(std::move(words)).output);
  }
  nlohmann::json Job() {
    const nlohmann::json jobs = Ask({"jobs", "list"});
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0] : nlohmann::json();
  }
  // Ids and trials of the screened records.
  std::set<std::pair<int64_t, int64_t>> Records() {
    std::set<std::pair<int64_t, int64_t>> screened;
    const nlohmann::json list = Ask({"records", "query", "--limit", "0"});
    EXPECT_TRUE(list.is_object());
    if (!list.is_object()) return screened;
    for (const auto& record : list["records"]) {
      if (record["policy"].get<std::string>().rfind("screen", 0) != 0) continue;
      screened.emplace(record["record"].get<int64_t>(), record["trial"].get<int64_t>());
    }
    return screened;
  }
  // The answer of the server to GET /metrics.
  std::string Metrics() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(metrics_port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string answer;
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t size; (size = read(fd, buffer, sizeof(buffer))) > 0;) {
        answer.append(buffer, size);
      }
    }
    close(fd);
    return answer;
  }
  bool MetricsSay(const std::string& line) {
    return Eventually([&] { return Metrics().find("\n" + line + "\n") != std::string::npos; });
  }
  bool ClientSays(const std::string& text) {
    return Eventually([&] { return tune_->Errors().find(text) != std::string::npos; });
  }
  void ExpectFinished() {
    EXPECT_EQ(tune_->Wait(absl::Minutes(4)), 0) << tune_->Errors() << server_->Errors();
    const nlohmann::json job = Job();
    ASSERT_TRUE(job.is_object());
    EXPECT_EQ(job["state"], "done") << job;
    EXPECT_EQ(job["trials"], kTrials) << job;
    const auto after = Records();
    EXPECT_THAT(after, IsSupersetOf(before_)) << "acknowledged records must be kept";
    std::set<int64_t> trials;
    for (const auto& [id, trial] : after) {
      EXPECT_TRUE(trials.insert(trial).second) << "trial " << trial << " was recorded twice";
    }
    EXPECT_EQ(trials.size(), static_cast<size_t>(kTrials) + 1) << "with the default schedule";
  }

  TemporaryFolder folder_;
  const std::string address_ = absl::StrCat("unix:", folder_ / "socket");
  const int metrics_port_ = FreePort();
  std::unique_ptr<Process> server_, worker_, tune_;
  std::set<std::pair<int64_t, int64_t>> before_;  // the records before the outage
};

TEST_F(OutageTest, AJobWaitsForAFullDisk) {
  ASSERT_NO_FATAL_FAILURE(Start(folder_ / "hone.db"));
  const auto limit = [&](rlim_t bytes) {
    rlimit now;
    ASSERT_EQ(prlimit(server_->pid(), RLIMIT_FSIZE, nullptr, &now), 0);
    now.rlim_cur = bytes;
    ASSERT_EQ(prlimit(server_->pid(), RLIMIT_FSIZE, &now, nullptr), 0);
  };
  limit(4096);
  ASSERT_TRUE(MetricsSay("hone_store_full 1")) << server_->Errors();
  EXPECT_TRUE(ClientSays("the disk of the server's store is full")) << tune_->Errors();
  const Result refused =
      RunProgram({"hone", "--server", address_, "tune", "relu", "m=64", "n=64", "--trials", "8"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("free space"));
  absl::SleepFor(OutageTime());
  EXPECT_TRUE(server_->Running());
  EXPECT_THAT(Records(), IsSupersetOf(before_)) << "reads are answered";
  EXPECT_EQ(Job()["state"], "running");
  limit(RLIM_INFINITY);
  EXPECT_TRUE(MetricsSay("hone_store_full 0"));
  ExpectFinished();
}

TEST_F(OutageTest, AJobWaitsForADatabaseThatIsAway) {
  if (store::PostgresPrograms().empty()) {
    GTEST_SKIP() << "PostgreSQL is not installed: install postgresql";
  }
  HONE_ASSERT_OK_AND_ASSIGN(store::PostgresServer* const database, store::PostgresServer::Get());
  ASSERT_NO_FATAL_FAILURE(Start(database->DatabaseOf(folder_.path()).value()));
  const std::string name = folder_.path().substr(folder_.path().rfind('/') + 1);
  const auto allow = [&](const char* allowed) {
    ASSERT_THAT(database->Administer(
                    absl::StrCat("ALTER DATABASE \"", name, "\" ALLOW_CONNECTIONS ", allowed)),
                IsOk());
  };
  allow("false");
  ASSERT_THAT(database->Administer(absl::StrCat("SELECT pg_terminate_backend(pid) FROM"
                                                " pg_stat_activity WHERE datname = '",
                                                name, "'")),
              IsOk());
  EXPECT_TRUE(MetricsSay("hone_server_state{state=\"unreachable\"} 1")) << server_->Errors();
  EXPECT_TRUE(ClientSays("the server cannot reach its database")) << tune_->Errors();
  EXPECT_EQ(
      RunProgram({"hone-server", "--listen", address_, "--store", "unused", "--check-health"}).code,
      1);
  absl::SleepFor(OutageTime());
  EXPECT_TRUE(server_->Running()) << server_->Errors();
  EXPECT_TRUE(tune_->Running()) << tune_->Errors();
  allow("true");
  ExpectFinished();
}

}  // namespace
}  // namespace hone::integration

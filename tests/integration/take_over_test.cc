// Two servers on one PostgreSQL database, two workers and a client that know both. The leader dies,
// stops or ends in the middle of a job, or the database goes away, and the job is finished all the
// same, without measuring anything twice.

#include <signal.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/scrape.h"
#include "tests/integration/hone_home.h"
#include "tests/server/store/postgres_server.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int kTrials = 40;
// From the kill of the leader until the standby grants the first lease.
constexpr absl::Duration kTakeOverLimit = absl::Seconds(10);

class TakeOverTest : public ::testing::Test {
 protected:
  struct Server {
    std::string address;
    int metrics_port = 0;
    std::unique_ptr<Process> process;
  };

  void SetUp() override {
    if (store::PostgresPrograms().empty()) {
      GTEST_SKIP() << "PostgreSQL is not installed: install postgresql";
    }
    HONE_ASSERT_OK_AND_ASSIGN(database_, store::PostgresServer::Get());
    uri_ = database_->DatabaseOf(folder_.path()).value();
    Deploy();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(Eventually([&] {
      const nlohmann::json list = Ask(both_, {"workers", "list"});
      return list.is_object() && list["workers"].size() == workers_.size();
    })) << workers_[0]->Errors()
        << one_.process->Errors();
  }
  // Starts two servers and two workers.
  virtual void Deploy() {
    one_ = Start("one", absl::StrCat("unix:", folder_ / "one"), {"--store", uri_});
    two_ = Start("two", absl::StrCat("unix:", folder_ / "two"), {"--store", uri_});
    both_ = absl::StrCat(one_.address, ",", two_.address);
    for (const char* const name : {"worker-1", "worker-2"}) {
      StartWorker(name, {"--server", both_, "--name", name});
    }
  }
  Server Start(const std::string& name, const std::string& address, const Words& options) {
    Server server{.address = address, .metrics_port = FreePort()};
    const std::string ready = folder_ / (name + ".ready");
    server.process = std::make_unique<Process>(
        With({"hone-server", "--listen", address, "--ready-file", ready, "--metrics-listen",
              absl::StrCat("127.0.0.1:", server.metrics_port)},
             options));
    EXPECT_TRUE(Eventually([&] {
      return RunProgram({"/usr/bin/test", "-e", ready}).code == 0 || !server.process->Running();
    }));
    EXPECT_TRUE(server.process->Running()) << server.process->Errors();
    return server;
  }
  void StartWorker(const std::string& name, const Words& options) {
    workers_.push_back(std::make_unique<Process>(
        With({"hone-worker", "--state-dir", folder_ / ("state-" + name)}, options)));
  }
  // The command line of `hone` for these servers.
  virtual Words Hone(const std::string& servers) const { return {"hone", "--server", servers}; }
  nlohmann::json Ask(const std::string& servers, const Words& words) const {
    return OneLineOfJson(RunProgram(With(With(Hone(servers), words), {"--json"})).output);
  }
  nlohmann::json Job(const std::string& servers) const {
    const nlohmann::json jobs = Ask(servers, {"jobs", "list"});
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0] : nlohmann::json();
  }
  static bool Says(const Server& server, const std::string& text) {
    return server.process->Errors().find(text) != std::string::npos;
  }
  // The number of leases that the server has granted since it began to lead.
  static double Granted(const Server& server) {
    const auto metrics = load::Scrape::Of(server.metrics_port);
    return metrics.ok() ? (*metrics)["hone_fleet_events_total{event=\"granted\"}"] : 0;
  }
  // Starts a job and waits until it has made some progress.
  std::unique_ptr<Process> StartJob() {
    auto tune =
        std::make_unique<Process>(With(Hone(both_), {"tune", "matmul", "m=64", "n=64", "k=64",
                                                     "--trials", absl::StrCat(kTrials), "--json"}));
    EXPECT_TRUE(Eventually([&] {
      const nlohmann::json job = Job(both_);
      return job.is_object() && job["trials"] >= 8;
    })) << tune->Errors()
        << one_.process->Errors();
    before_ = Screened(both_);
    EXPECT_GE(before_.size(), 8u);
    return tune;
  }
  // Record ids and trials of the screened records.
  std::set<std::pair<int64_t, int64_t>> Screened(const std::string& server) const {
    std::set<std::pair<int64_t, int64_t>> screened;
    const nlohmann::json list = Ask(server, {"records", "query", "--limit", "0"});
    EXPECT_TRUE(list.is_object());
    if (!list.is_object()) return screened;
    for (const auto& record : list["records"]) {
      if (record["policy"].get<std::string>().rfind("screen", 0) != 0) continue;
      screened.emplace(record["record"].get<int64_t>(), record["trial"].get<int64_t>());
    }
    return screened;
  }
  void ExpectFinishedOnce(const std::string& server) {
    ASSERT_TRUE(Eventually(
        [&] {
          const nlohmann::json job = Job(server);
          return job.is_object() && (job["state"] == "done" || job["state"] == "failed");
        },
        absl::Minutes(4)))
        << Job(server) << one_.process->Errors() << two_.process->Errors();
    const nlohmann::json job = Job(server);
    EXPECT_EQ(job["state"], "done") << job;
    EXPECT_EQ(job["trials"], kTrials) << job;
    EXPECT_FALSE(job["best"].is_null()) << job;
    const auto after = Screened(server);
    EXPECT_THAT(after, IsSupersetOf(before_)) << "acknowledged records must be kept";
    std::set<int64_t> trials;
    for (const auto& [id, trial] : after) {
      EXPECT_TRUE(trials.insert(trial).second) << "trial " << trial << " was recorded twice";
    }
    EXPECT_EQ(trials.size(), static_cast<size_t>(kTrials) + 1) << "with the default schedule";
  }

  // Kills the leader in the middle of a job, and expects the other server to finish it.
  void KillTheLeader() {
    const auto tune = StartJob();
    const absl::Time killed = absl::Now();
    one_.process->Signal(SIGKILL);
    EXPECT_TRUE(Eventually([&] { return Granted(two_) > 0; })) << two_.process->Errors();
    const absl::Duration granted = absl::Now() - killed;
    EXPECT_TRUE(Says(two_, "is continued"));
    EXPECT_TRUE(Eventually([&] { return Screened(both_).size() > before_.size(); }))
        << workers_[0]->Errors() << two_.process->Errors();
    const absl::Duration stored = absl::Now() - killed;
    std::printf(
        "the next lease was granted after %.1f s, and the next result stored after %.1f s\n",
        absl::ToDoubleSeconds(granted), absl::ToDoubleSeconds(stored));
    RecordProperty("take_over_s", absl::StrFormat("%.1f", absl::ToDoubleSeconds(granted)));
    EXPECT_LT(granted, kTakeOverLimit);
    ExpectFinishedOnce(both_);
    EXPECT_EQ(tune->Wait(), 0) << "the client has found the next leader\n" << tune->Errors();
  }

  TemporaryFolder folder_;
  store::PostgresServer* database_ = nullptr;
  std::string uri_;
  Server one_, two_;
  std::string both_;  // the addresses
  std::vector<std::unique_ptr<Process>> workers_;
  std::set<std::pair<int64_t, int64_t>> before_;  // the records before the fault
};

TEST_F(TakeOverTest, AStandbyRefusesCalls) {
  EXPECT_TRUE(Says(two_, "another server leads"));
  const Result refused = RunProgram({"hone", "--server", two_.address, "jobs", "list"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("another server leads"));
  EXPECT_EQ(
      RunProgram({"hone-server", "--listen", two_.address, "--store", uri_, "--check-health"}).code,
      1);
  EXPECT_EQ(
      RunProgram({"hone-server", "--listen", one_.address, "--store", uri_, "--check-health"}).code,
      0);
}

TEST_F(TakeOverTest, TheJobOfAKilledLeaderIsFinished) { KillTheLeader(); }

TEST_F(TakeOverTest, AStoppedLeaderWritesNothingMore) {
  const auto tune = StartJob();
  one_.process->Signal(SIGSTOP);
  EXPECT_TRUE(Eventually([&] { return Says(two_, "is continued"); })) << two_.process->Errors();
  one_.process->Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return Says(one_, "does not lead any more"); }))
      << one_.process->Errors();
  ExpectFinishedOnce(two_.address);
  EXPECT_TRUE(one_.process->Running()) << one_.process->Errors();
  EXPECT_TRUE(Eventually([&] { return Says(one_, "another server leads, and this one"); }))
      << "it competes again\n"
      << one_.process->Errors();
}

TEST_F(TakeOverTest, ALeaderThatEndsHandsOverAtOnce) {
  const auto tune = StartJob();
  one_.process->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return Says(two_, "is continued"); }, absl::Seconds(20)))
      << two_.process->Errors();
  ExpectFinishedOnce(both_);
  EXPECT_EQ(tune->Wait(), 0) << tune->Errors();
}

TEST_F(TakeOverTest, JobsWaitForADatabaseThatIsAway) {
  const auto tune = StartJob();
  const std::string name = folder_.path().substr(folder_.path().rfind('/') + 1);
  const auto allow = [&](const char* allowed) {
    ASSERT_THAT(database_->Administer(
                    absl::StrCat("ALTER DATABASE \"", name, "\" ALLOW_CONNECTIONS ", allowed)),
                IsOk());
  };
  allow("false");
  ASSERT_THAT(database_->Administer(absl::StrCat("SELECT pg_terminate_backend(pid) FROM"
                                                 " pg_stat_activity WHERE datname = '",
                                                 name, "'")),
              IsOk());
  EXPECT_TRUE(Eventually([&] { return Says(one_, "does not lead any more"); }))
      << one_.process->Errors();
  EXPECT_TRUE(Eventually([&] {
    return RunProgram({"hone-server", "--listen", one_.address, "--store", uri_, "--check-health"})
               .code == 1;
  }));
  allow("true");
  ExpectFinishedOnce(both_);
  EXPECT_EQ(tune->Wait(), 0) << tune->Errors();
}

// The commands of deploy/README.md for a leader and a standby, with two ports of one machine
// instead of two machines: encryption, certificates and tokens from one authority.
class DeployedTest : public TakeOverTest {
 protected:
  void Deploy() override {
    const std::string one = absl::StrCat("localhost:", FreePort());
    const std::string two = absl::StrCat("localhost:", FreePort());
    both_ = absl::StrCat(one, ",", two);
    const Result made = RunProgram({"hone-server", "init", team_, "--host", "localhost", "--port",
                                    one.substr(one.find(':') + 1), "--store", uri_, "--worker",
                                    "w-1", "--worker", "w-2"});
    ASSERT_EQ(made.code, 0) << made.errors;
    for (const char* const caller : {"admin", "worker-w-1", "worker-w-2"}) {
      const std::string path = absl::StrCat(team_, "/", caller, ".conf");
      std::string text = ReadFile(path).value();
      ASSERT_EQ(absl::StrReplaceAll(
                    {{absl::StrCat("\"", one, "\""), absl::StrCat("\"", both_, "\"")}}, &text),
                1);
      ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
    }
    const std::string config = team_ + "/hone.toml";
    one_ = Start("one", one, {"--config", config});
    two_ = Start("two", two, {"--config", config});
    for (const char* const name : {"w-1", "w-2"}) {
      StartWorker(name, {"--config", absl::StrCat(team_, "/worker-", name, ".conf")});
    }
  }
  Words Hone(const std::string&) const override {
    return {"hone", "--config", team_ + "/admin.conf"};
  }

  const std::string team_ = folder_ / "team";
};

TEST_F(DeployedTest, TheJobOfAKilledLeaderIsFinished) { KillTheLeader(); }

}  // namespace
}  // namespace hone::integration

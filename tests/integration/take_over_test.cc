// Two server replicas share a PostgreSQL database. One of them dies or stops in the middle of a
// job, and the other one finishes the job.

#include <signal.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/server/store/postgres_server.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::IsSupersetOf;

constexpr int kTrials = 40;
// The claim of a dead replica lasts at most 30 s, and the other replica looks for jobs every 5 s.
// The rest allows for busy machines.
constexpr absl::Duration kTakeOverLimit = absl::Seconds(75);

// A server and its worker.
struct Replica {
  std::string address;
  std::unique_ptr<Process> server;
  std::unique_ptr<Process> worker;
  void Signal(int number) {
    server->Signal(number);
    worker->Signal(number);
  }
};

class TakeOverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (store::PostgresPrograms().empty()) {
      GTEST_SKIP() << "PostgreSQL is not installed: install postgresql";
    }
    HONE_ASSERT_OK_AND_ASSIGN(auto database, store::PostgresServer::Get());
    uri_ = database->DatabaseOf(folder_.path()).value();
    one_ = Start("one");
    two_ = Start("two");
  }
  Replica Start(const std::string& name) {
    Replica replica{.address = absl::StrCat("unix:", folder_ / name)};
    const std::string ready = folder_ / (name + ".ready");
    replica.server = std::make_unique<Process>(std::vector<std::string>{
        "hone-server", "--listen", replica.address, "--store", uri_, "--ready-file", ready});
    EXPECT_TRUE(Eventually([&] {
      return RunProgram({"/usr/bin/test", "-e", ready}).code == 0 || !replica.server->Running();
    }));
    EXPECT_TRUE(replica.server->Running()) << replica.server->Errors();
    replica.worker = std::make_unique<Process>(
        std::vector<std::string>{"hone-worker", "--server", replica.address, "--name",
                                 "worker-" + name, "--state-dir", folder_ / ("state-" + name)});
    EXPECT_TRUE(Eventually([&] {
      const nlohmann::json list = Ask(replica, {"workers", "list"});
      return list.is_object() && !list["workers"].empty();
    })) << replica.worker->Errors();
    return replica;
  }
  static nlohmann::json Ask(const Replica& replica, std::vector<std::string> words) {
    words.insert(words.begin(), {"hone", "--server", replica.address});
    words.push_back("--json");
    return OneLineOfJson(RunProgram(std::move(words)).output);
  }
  static nlohmann::json Job(const Replica& replica) {
    const nlohmann::json jobs = Ask(replica, {"jobs", "list"});
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0] : nlohmann::json();
  }
  // Starts a job on a replica and waits until it has made some progress.
  std::unique_ptr<Process> StartJob(const Replica& replica) {
    auto tune = std::make_unique<Process>(
        std::vector<std::string>{"hone", "--server", replica.address, "tune", "matmul", "m=64",
                                 "n=64", "k=64", "--trials", absl::StrCat(kTrials), "--json"});
    EXPECT_TRUE(Eventually([&] {
      const nlohmann::json job = Job(replica);
      return job.is_object() && job["trials"] >= 8;
    })) << tune->Errors()
        << replica.server->Errors();
    return tune;
  }
  // Record ids and trials of the screened records.
  static std::set<std::pair<int64_t, int64_t>> Screened(const Replica& replica) {
    std::set<std::pair<int64_t, int64_t>> screened;
    const nlohmann::json list = Ask(replica, {"records", "query", "--limit", "0"});
    EXPECT_TRUE(list.is_object());
    if (!list.is_object()) return screened;
    for (const auto& record : list["records"]) {
      if (record["policy"].get<std::string>().rfind("screen", 0) != 0) continue;
      screened.emplace(record["record"].get<int64_t>(), record["trial"].get<int64_t>());
    }
    return screened;
  }
  // Waits until the replica continues the job. Returns the time that this took.
  static absl::Duration WaitForTakeOver(const Replica& replica) {
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(Eventually(
        [&] { return replica.server->Errors().find("is continued") != std::string::npos; },
        kTakeOverLimit))
        << replica.server->Errors();
    const absl::Duration took = absl::Now() - begin;
    std::printf("the job was taken over after %.1f s\n", absl::ToDoubleSeconds(took));
    return took;
  }
  void ExpectFinishedOnce(const Replica& replica,
                          const std::set<std::pair<int64_t, int64_t>>& before) {
    ASSERT_TRUE(Eventually(
        [&] {
          const nlohmann::json job = Job(replica);
          return job.is_object() && (job["state"] == "done" || job["state"] == "failed");
        },
        absl::Minutes(4)))
        << Job(replica) << replica.server->Errors();
    const nlohmann::json job = Job(replica);
    EXPECT_EQ(job["state"], "done") << job;
    EXPECT_EQ(job["trials"], kTrials) << job;
    EXPECT_FALSE(job["best"].is_null()) << job;
    const auto after = Screened(replica);
    EXPECT_THAT(after, IsSupersetOf(before)) << "acknowledged records must be kept";
    std::set<int64_t> trials;
    for (const auto& [id, trial] : after) {
      EXPECT_TRUE(trials.insert(trial).second) << "trial " << trial << " was recorded twice";
    }
    EXPECT_EQ(trials.size(), static_cast<size_t>(kTrials) + 1) << "with the default schedule";
  }

  TemporaryFolder folder_;
  std::string uri_;
  Replica one_, two_;
};

TEST_F(TakeOverTest, WorkerStateIsSharedBetweenReplicas) {
  const auto draining_at_two = [&] {
    const nlohmann::json list = Ask(two_, {"workers", "list"});
    if (!list.is_object()) return false;
    for (const auto& worker : list["workers"]) {
      if (worker["worker"] == "worker-one") return worker["draining"].get<bool>();
    }
    return false;
  };
  ASSERT_EQ(RunProgram({"hone", "--server", one_.address, "workers", "drain", "worker-one"}).code,
            0);
  EXPECT_TRUE(Eventually(draining_at_two)) << "the worker has never called the second replica";
  ASSERT_EQ(RunProgram({"hone", "--server", two_.address, "workers", "resume", "worker-one"}).code,
            0);
  EXPECT_TRUE(Eventually([&] {
    const nlohmann::json list = Ask(one_, {"workers", "list"});
    return list.is_object() && !list["workers"].empty() &&
           !list["workers"][0]["draining"].get<bool>();
  }));
}

TEST_F(TakeOverTest, KilledReplicasJobIsFinishedByTheOther) {
  const auto tune = StartJob(one_);
  const auto before = Screened(two_);
  EXPECT_GE(before.size(), 8u);
  one_.Signal(SIGKILL);
  const absl::Duration took = WaitForTakeOver(two_);
  RecordProperty("take_over_s", absl::StrFormat("%.1f", absl::ToDoubleSeconds(took)));
  ExpectFinishedOnce(two_, before);
}

TEST_F(TakeOverTest, StoppedReplicaWritesNothingMore) {
  const auto tune = StartJob(one_);
  const auto before = Screened(two_);
  one_.Signal(SIGSTOP);
  WaitForTakeOver(two_);
  one_.Signal(SIGCONT);
  // The replica notices by a refused write or by the renewal, whichever comes first.
  EXPECT_TRUE(Eventually([&] {
    const std::string log = one_.server->Errors();
    return log.find("left to another server") != std::string::npos ||
           log.find("another server works on it now") != std::string::npos;
  })) << one_.server->Errors();
  ExpectFinishedOnce(two_, before);
  EXPECT_TRUE(one_.server->Running()) << one_.server->Errors();
  EXPECT_EQ(Job(one_)["state"], "done") << "it shows the result of the other replica";
}

TEST_F(TakeOverTest, ShutdownHandsOverTheJobAtOnce) {
  const auto tune = StartJob(one_);
  const auto before = Screened(two_);
  one_.Signal(SIGTERM);
  EXPECT_LT(WaitForTakeOver(two_), absl::Seconds(30)) << "the claim was not released";
  ExpectFinishedOnce(two_, before);
}

}  // namespace
}  // namespace hone::integration

// Checks that the seeds of the target `handlers` reach the code they are meant for.

#include "gtest/gtest.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "tests/fuzz/handlers_mutator.h"
#include "tests/fuzz/handlers_script.h"
#include "tests/fuzz/handlers_world.h"
#include "tests/status.h"

namespace hone::fuzz {
namespace {

// Returns the result of each call of the script, in order.
std::vector<std::pair<std::string, HandlersWorld::Reply>> Play(HandlersWorld& world,
                                                               const std::string& script) {
  std::vector<std::pair<std::string, HandlersWorld::Reply>> replies;
  for (const ScriptedCall& call : ReadScript(script)) {
    const std::string path = call.method->path;
    const std::string token =
        (call.flags & kNoToken) != 0 ? "" : HandlersWorld::TokenOf(call.method->role);
    replies.emplace_back(
        path.substr(path.rfind('/') + 1),
        world.Call(path, call.messages, token, path.ends_with("WatchJob") ? 1 : 99));
  }
  return replies;
}

class HandlersFuzzTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Stores, HandlersFuzzTest, ::testing::Bool());

TEST_P(HandlersFuzzTest, TuningSeedRunsToABest) {
  HandlersWorld world(GetParam());
  int leases = 0;
  for (const auto& [method, reply] : Play(world, TuningScript(GetParam()))) {
    const bool of_files = method == "CompactStore" || method == "BackupStore";
    // The path is not absolute, and two results are too few for training.
    if (of_files || method == "TrainModel" || method == "EvaluateModels") continue;
    if (method ==
        "WatchJob") {  // its caller disconnects after the first answer, unless it is the last
      EXPECT_FALSE(reply.messages.empty());
      continue;
    }
    EXPECT_THAT(reply.status, IsOk()) << method << ": " << reply.status.error_message();
    if (method == "Synchronize" && !reply.messages.empty()) {
      v1::SynchronizeResponse response;
      ASSERT_TRUE(response.ParseFromString(reply.messages[0]));
      leases += response.start_size();
    }
    if (method == "GetJob") {
      v1::Job job;
      ASSERT_TRUE(job.ParseFromString(reply.messages.at(0)));
      EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.DebugString();
      EXPECT_GE(job.trials(), 2);
    }
  }
  EXPECT_GE(leases, 3);
  world.CheckWhatMustHold();
}

TEST(HandlersSeedTest, EverySeedKeepsTheInvariants) {
  HandlersWorld world(/*on_disk=*/false);
  const auto replies = Play(world, HostileScript());
  EXPECT_GE(replies.size(), 20u);
  int refused = 0;
  for (const auto& [method, reply] : replies) refused += reply.status.ok() ? 0 : 1;
  EXPECT_GE(refused, 5);
  world.CheckWhatMustHold();
}

// Most messages must still be parsed after a mutation.
TEST(HandlersMutatorTest, MutantsDifferAndMostlyParse) {
  const std::string script = TuningScript(/*on_disk=*/true);
  int synchronize = 0, read = 0, others = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed), same(seed);
    const std::string mutated = MutateScript(script, rng);
    EXPECT_EQ(mutated, MutateScript(script, same));
    EXPECT_TRUE(IsOnDisk(mutated));
    others += mutated != script ? 1 : 0;
    for (const ScriptedCall& call : ReadScript(mutated)) {
      if (!std::string(call.method->path).ends_with("/Synchronize")) continue;
      ++synchronize;
      v1::SynchronizeRequest request;
      if (!call.messages.empty() && request.ParseFromString(call.messages[0])) ++read;
    }
  }
  EXPECT_GE(others, 190);
  EXPECT_GE(synchronize, 200 * 10);
  EXPECT_GE(read, synchronize * 95 / 100);
  Rng rng(1);
  EXPECT_EQ(MutateScript("", rng), "");
}

}  // namespace
}  // namespace hone::fuzz

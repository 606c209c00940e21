// The seeds of the target `handlers` reach what they are for.

#include "gtest/gtest.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "tests/fuzz/handlers_script.h"
#include "tests/fuzz/handlers_world.h"

namespace hone::fuzz {
namespace {

// What each call of the script came to, in their order.
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

TEST_P(HandlersFuzzTest, TheTuningSeedGoesFromTheFirstCallToTheBest) {
  HandlersWorld world(GetParam());
  int leases = 0, lookups = 0;
  for (const auto& [method, reply] : Play(world, TuningScript(GetParam()))) {
    const bool of_files = method == "CompactStore" || method == "BackupStore";
    // Its path is not absolute, and two results are too few to learn from.
    if (of_files || method == "TrainModel" || method == "EvaluateModels") continue;
    if (method ==
        "WatchJob") {  // its caller goes away with the first answer, if it is not the last
      EXPECT_FALSE(reply.messages.empty());
      continue;
    }
    if (method == "LookupBest" && ++lookups == 2) {
      EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::NOT_FOUND)
          << "the best of two trials is the default, which is not adapted";
      continue;
    }
    EXPECT_TRUE(reply.status.ok()) << method << ": " << reply.status.error_message();
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

TEST(HandlersSeedTest, EverySeedIsReadAndKeepsWhatMustHold) {
  HandlersWorld world(/*on_disk=*/false);
  const auto replies = Play(world, HostileScript());
  EXPECT_GE(replies.size(), 20u);
  int refused = 0;
  for (const auto& [method, reply] : replies) refused += reply.status.ok() ? 0 : 1;
  EXPECT_GE(refused, 5);
  world.CheckWhatMustHold();
}

}  // namespace
}  // namespace hone::fuzz

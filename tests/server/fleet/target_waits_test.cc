#include <memory>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/fleet_parts.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::StartsWith;

class TargetWaitsTest : public ::testing::Test {
 protected:
  // The answer to a call that waits for a worker with this target key; null while the call waits.
  using Answer = std::shared_ptr<std::optional<absl::StatusOr<TargetChoice>>>;
  Answer Await(const std::string& key, absl::Duration patience = absl::ZeroDuration()) {
    auto answer = std::make_shared<std::optional<absl::StatusOr<TargetChoice>>>();
    waits_.Await(key, now_, patience,
                 [answer](absl::StatusOr<TargetChoice> choice) { *answer = std::move(choice); });
    RunDeferred();
    return answer;
  }
  void RunDeferred() {
    for (auto& call : deferred_.Take()) std::move(call)();
  }
  void AddWorker(const std::string& id, const std::string& target_key) {
    Worker& worker = registry_.Add(id);
    worker.connected = true;
    registry_.SetCapabilities(worker, {.target_key = target_key, .can_run = true});
    waits_.Answer(target_key);
    RunDeferred();
  }

  const absl::Time now_ = absl::UnixEpoch();
  Standings standings_;
  WorkerRegistry registry_{&standings_};
  DeferredCalls deferred_;
  TargetWaits waits_{3, &registry_, &deferred_};
};

TEST_F(TargetWaitsTest, ACallIsAnsweredWhenAWorkerOfItsTargetRegisters) {
  const Answer a = Await("a"), any = Await(""), b = Await("b");
  EXPECT_EQ(waits_.size(), 3u);
  AddWorker("w", "a");
  EXPECT_EQ((*a)->value().key, "a");
  EXPECT_EQ((*any)->value().key, "a") << "the only target";
  EXPECT_FALSE(b->has_value());
  EXPECT_EQ((*Await("a"))->value().key, "a") << "answered at once";
}

TEST_F(TargetWaitsTest, CallFailsWithAdviceAtItsDeadline) {
  AddWorker("w", "b");
  const Answer first = Await("a", absl::Seconds(1));
  const Answer second = Await("a", absl::Seconds(2));
  waits_.Expire(now_);
  EXPECT_EQ(waits_.size(), 2u);
  waits_.Expire(now_ + absl::Seconds(1));
  RunDeferred();
  EXPECT_THAT(
      (*first)->status(),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          "the server waited 1 s for a worker: no registered worker runs target a; registered: "
          "b; start "
          "hone-worker on such a machine"));
  EXPECT_FALSE(second->has_value());
}

TEST_F(TargetWaitsTest, ACallForAnyTargetFailsWithAdvice) {
  const Answer any = Await("", absl::Seconds(15));
  waits_.Expire(now_ + absl::Seconds(15));
  RunDeferred();
  EXPECT_THAT(
      std::string((*any)->status().message()),
      StartsWith("the server waited 15 s for a worker: target native: no worker that runs"));
}

TEST_F(TargetWaitsTest, TheNumberOfCallsIsLimited) {
  for (int i = 0; i < 3; ++i) Await("a");
  EXPECT_THAT((*Await("a"))->status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(TargetWaitsTest, CloseAnswersPendingAndLaterCalls) {
  const Answer before = Await("a");
  waits_.Close();
  RunDeferred();
  EXPECT_THAT((*before)->status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT((*Await(""))->status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(waits_.size(), 0u);
}

}  // namespace
}  // namespace hone::fleet

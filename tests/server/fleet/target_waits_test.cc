#include "server/fleet/target_waits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::fleet {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TargetDone Ignore() {
  return [](const absl::StatusOr<TargetChoice>&) {};
}

TEST(TargetWaitsTest, AreTakenByTheirKeyOrAtTheirDeadline) {
  const absl::Time now = absl::UnixEpoch();
  TargetWaits waits;
  waits.Add("a", now + absl::Seconds(1), Ignore());
  waits.Add("a", now + absl::Seconds(2), Ignore());
  waits.Add("b", now + absl::Seconds(3), Ignore());
  waits.Add("", now + absl::Seconds(4), Ignore());
  EXPECT_EQ(waits.size(), 4u);
  EXPECT_THAT(waits.Take("c"), IsEmpty());
  EXPECT_THAT(waits.TakeExpired(now), IsEmpty());
  const auto expired = waits.TakeExpired(now + absl::Seconds(1));
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(expired[0].first, "a");
  EXPECT_THAT(waits.Take("a"), SizeIs(1));
  EXPECT_THAT(waits.Take("a"), IsEmpty());
  EXPECT_THAT(waits.TakeExpired(absl::InfiniteFuture()), SizeIs(2));
  EXPECT_EQ(waits.size(), 0u);
}

}  // namespace
}  // namespace hone::fleet

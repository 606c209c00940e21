#include "client/cli/network/network_kernels.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(UnconfirmedTextTest, CountsWhatTasksUseInstead) {
  EXPECT_EQ(UnconfirmedText({.confirmed = 5}), "");
  EXPECT_EQ(UnconfirmedText({.confirmed = 82, .measured = 31, .draft = 21}),
            "52 of 134 tasks have no confirmed schedule: 31 use the best measured one, 21 the "
            "draft's");
  EXPECT_EQ(UnconfirmedText({.confirmed = 82, .measured = 31, .draft = 21, .unchecked = 21}),
            "52 of 134 tasks have no confirmed schedule: 31 use the best measured one, 21 the "
            "draft's; the output of 21 of them was not checked");
  EXPECT_EQ(UnconfirmedText({.confirmed = 4, .measured = 1}),
            "1 of 5 tasks has no confirmed schedule: 1 uses the best measured one");
  EXPECT_EQ(UnconfirmedText({.draft = 1, .unchecked = 1}),
            "1 of 1 task has no confirmed schedule: 1 uses the draft's; the output of 1 of them "
            "was not checked");
}

TEST(CountSchedulesTest, KnowsWhetherAnythingWasMeasured) {
  std::vector<TaskSchedule> schedules(3);
  EXPECT_FALSE(CountSchedules(schedules).AnyMeasured());
  schedules[1].source = ScheduleSource::kMeasured;
  const ScheduleCounts counts = CountSchedules(schedules);
  EXPECT_TRUE(counts.AnyMeasured());
  EXPECT_EQ(counts.draft, 2);
  EXPECT_EQ(ToJson(counts).dump(), R"({"confirmed":0,"measured":1,"draft":2,"unchecked":0})");
}

}  // namespace
}  // namespace hone::cli

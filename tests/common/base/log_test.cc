#include "common/base/log.h"

#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone {
namespace {

const absl::Time kTime = absl::FromUnixMillis(1'700'000'000'123);

std::string Json(absl::string_view message) {
  return FormatLogLine(LogFormat::kJson, "hone-server", "info", kTime, message);
}

constexpr char kBegin[] =
    "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"program\":\"hone-server\"";

TEST(LogTest, JsonNamesJobsAndWorkers) {
  EXPECT_EQ(Json("serving"), std::string(kBegin) + ",\"message\":\"serving\"}");
  EXPECT_EQ(Json("job 4711: goes on"),
            std::string(kBegin) + ",\"job\":\"4711\",\"message\":\"goes on\"}");
  EXPECT_EQ(Json("worker pi-07: lost: silent"),
            std::string(kBegin) + ",\"worker\":\"pi-07\",\"message\":\"lost: silent\"}");
  EXPECT_EQ(Json("job well done"), std::string(kBegin) + ",\"message\":\"job well done\"}");
}

TEST(LogTest, EscapesLineBreaks) {
  EXPECT_EQ(Json("a\nb \"c\" \\ \x01"),
            std::string(kBegin) + ",\"message\":\"a\\nb \\\"c\\\" \\\\ \\u0001\"}");
  const std::string line =
      FormatLogLine(LogFormat::kText, "hone-server", "warning", kTime, "a\nb \"c\" \x1b");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(" warning a\\nb \"c\" \\u001b"), std::string::npos) << line;
}

TEST(LogTest, UnknownFormatsAndLevelsAreRefused) {
  EXPECT_THAT(SetUpLog("x", "xml", "info"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SetUpLog("x", "json", "loud"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone

// The parts of the page's server without a connection: sessions, and messages as JSON.

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/tuning.pb.h"
#include "nlohmann/json.hpp"
#include "server/web/message_json.h"
#include "server/web/session_book.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::web {
namespace {

using ::testing::HasSubstr;

const rpc::Identity kAnn = {"ann", rpc::Role::kViewer};

TEST(SessionBookTest, ACodeBeginsOneSession) {
  FakeClock clock;
  SessionBook book(&clock);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string code, book.Invite(kAnn, /*has_token=*/true));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string token, book.Begin(code));
  ASSERT_TRUE(book.Find(token).has_value());
  EXPECT_EQ(book.Find(token)->caller, kAnn);
  EXPECT_TRUE(book.Find(token)->has_token);
  EXPECT_NE(book.Find(token)->csrf, token);
  EXPECT_EQ(book.Find(code), std::nullopt);
  EXPECT_EQ(book.Find(""), std::nullopt);
  EXPECT_THAT(book.Begin(code), StatusIs(absl::StatusCode::kUnauthenticated,
                                         HasSubstr("expired or was used before")));
  book.End(token);
  EXPECT_EQ(book.Find(token), std::nullopt);
}

TEST(SessionBookTest, CodesAndSessionsExpire) {
  FakeClock clock;
  SessionBook book(&clock);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string late, book.Invite(kAnn, false));
  clock.Advance(SessionBook::kCodeLifetime);
  EXPECT_THAT(book.Begin(late), StatusIs(absl::StatusCode::kUnauthenticated));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string code, book.Invite(kAnn, false));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string token, book.Begin(code));
  clock.Advance(SessionBook::kLifetime - absl::Seconds(1));
  EXPECT_TRUE(book.Find(token).has_value());
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(book.Find(token), std::nullopt);
}

TEST(SessionBookTest, TheOldestOfTooManyCodesIsForgotten) {
  FakeClock clock;
  SessionBook book(&clock);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string first, book.Invite(kAnn, false));
  std::string last;
  for (size_t i = 0; i < SessionBook::kMaxCodes; ++i) {
    clock.Advance(absl::Milliseconds(1));
    HONE_ASSERT_OK_AND_ASSIGN(last, book.Invite(kAnn, false));
  }
  EXPECT_THAT(book.Begin(first), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(book.Begin(last).status(), IsOk());
}

TEST(MessageJsonTest, WritesEveryKindOfField) {
  v1::Job job;
  job.set_id("</script>\"\n\x01");
  job.set_state(v1::JOB_STATE_DONE);
  job.set_trials(int64_t{1} << 50);
  (*job.mutable_outcomes())["crash \""] = 3;
  job.mutable_best()->mutable_record()->mutable_result()->set_latency_ns(0.1);
  job.mutable_best()->set_gflops(std::numeric_limits<double>::quiet_NaN());
  job.mutable_network()->add_tasks()->add_weights(2.5);
  job.set_left_ms(0);
  std::string text;
  AppendJson(job, &text);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["id"], job.id());
  EXPECT_EQ(json["state"], "JOB_STATE_DONE");
  EXPECT_EQ(json["trials"], int64_t{1} << 50);
  EXPECT_EQ(json["outcomes"]["crash \""], 3);
  EXPECT_EQ(json["best"]["record"]["result"]["latency_ns"], 0.1);
  EXPECT_TRUE(json["best"]["gflops"].is_null());
  EXPECT_EQ(json["network"]["tasks"][0]["weights"][0], 2.5);
  EXPECT_EQ(json["left_ms"], 0);
  EXPECT_EQ(json["error"], "");
  // Absent messages and optional fields are absent.
  EXPECT_FALSE(json.contains("request"));
  std::string empty;
  AppendJson(v1::UploadInputsResponse(), &empty);
  EXPECT_EQ(empty, "{\"digest\":\"\"}");
  empty.clear();
  AppendJson(v1::ListPinsRequest(), &empty);
  EXPECT_EQ(empty, "{}");
}

TEST(MessageJsonTest, ParametersSetFields) {
  v1::ListRecordsRequest request;
  EXPECT_THAT(SetFields({{"operator", "matmul"},
                         {"page_size", "7"},
                         {"since_unix_ms", "1700000000000"},
                         {"best_only", "true"},
                         {"quarantine", "QUARANTINE_ONLY"},
                         {"target", ""}},
                        request),
              IsOk());
  EXPECT_EQ(request.operator_(), "matmul");
  EXPECT_EQ(request.page_size(), 7);
  EXPECT_EQ(request.since_unix_ms(), 1700000000000);
  EXPECT_TRUE(request.best_only());
  EXPECT_EQ(request.quarantine(), v1::QUARANTINE_ONLY);
  for (const auto& [name, value] :
       {std::pair("page_size", "x"), std::pair("page_size", "99999999999"),
        std::pair("best_only", "yes"), std::pair("quarantine", "NO"), std::pair("nothing", "1")}) {
    EXPECT_THAT(SetFields({{name, value}}, request),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
  v1::CreateJobRequest job;
  EXPECT_THAT(SetFields({{"tolerance", "nan"}}, job), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SetFields({{"network", "1"}}, job), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::web

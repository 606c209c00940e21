#include "client/cli/records/known_best.h"

#include "common/record/origin.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(UnknownTextTest, NamesTheJobThatMeasured) {
  EXPECT_EQ(UnknownText(""), "nothing known");
  EXPECT_EQ(UnknownText("7.2"), "job 7.2, not confirmed");
  EXPECT_EQ(UnknownText("06e5b35a0da9936b/4"), "imported, not confirmed");
  EXPECT_EQ(UnknownJson("7.2"), "7.2");
  EXPECT_TRUE(UnknownJson("06e5b35a0da9936b/4").is_null()) << "jobs show does not know it";
  EXPECT_TRUE(UnknownJson("").is_null());
}

TEST(IsForgottenTest, OtherQuarantinesAreNotForgotten) {
  record::Record record;
  record.quarantine_reason = "forgotten by ann on 2026-11-27 03:46:04 UTC";
  EXPECT_FALSE(record::IsForgotten(record));
  record.quarantined = true;
  EXPECT_TRUE(record::IsForgotten(record));
  record.quarantine_reason = "revalidation: the output is wrong";
  EXPECT_FALSE(record::IsForgotten(record));
}

TEST(UnconfirmedJobTest, DisturbedMeasurementsCountAndForgottenOnesDoNot) {
  record::Record disturbed;
  disturbed.job_id = "7";
  disturbed.quarantined = true;
  disturbed.quarantine_reason = "the machine was 3.5 times as slow as before";
  record::Record forgotten = disturbed;
  forgotten.quarantine_reason = "forgotten on 2026-11-27 03:46:04 UTC";
  EXPECT_EQ(UnconfirmedJobIn({}), "");
  EXPECT_EQ(UnconfirmedJobIn({disturbed}), "7") << "other work disturbed the whole job";
  EXPECT_EQ(UnconfirmedJobIn({forgotten}), "");
  EXPECT_EQ(UnconfirmedJobIn({disturbed, forgotten}), "") << "it was disturbed before";
  record::Record later = disturbed;
  later.job_id = "8";
  EXPECT_EQ(UnconfirmedJobIn({later, disturbed, forgotten}), "8");
}

TEST(IsUsableTest, AForgottenOrUncheckedCandidateIsNotUsed) {
  v1::Best best;
  best.set_trace("trace");
  best.set_latency_ns(5);
  v1::Record& record = *best.mutable_record();
  record.set_workload_digest("w");
  record.mutable_policy()->set_name("screen");
  record.mutable_policy()->set_cache("flushed");
  record.mutable_result()->set_outcome(v1::OUTCOME_OK);
  EXPECT_TRUE(IsUsable(best, "w"));
  EXPECT_FALSE(IsUsable(best, "v"));
  record.set_quarantined(true);
  record.set_quarantine_reason("the machine was 3.5 times as slow as before");
  EXPECT_TRUE(IsUsable(best, "w")) << "a disturbed measurement is correct";
  record.set_quarantine_reason("forgotten on 2026-11-27 03:46:04 UTC");
  EXPECT_FALSE(IsUsable(best, "w"));
  record.set_quarantined(false);
  record.mutable_result()->set_detail(
      "the latency is estimated from a part of the range; the output was not checked");
  EXPECT_FALSE(IsUsable(best, "w"));
  record.mutable_result()->clear_detail();
  best.clear_trace();
  EXPECT_FALSE(IsUsable(best, "w"));
}

}  // namespace
}  // namespace hone::cli

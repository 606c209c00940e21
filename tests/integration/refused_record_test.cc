// A record from an earlier version whose kernel would be refused today: revalidating its best
// quarantines it, and tuning finds another best.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/ir/workload_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/space/maker.h"
#include "tests/integration/hone_home.h"
#include "tests/server/store/done.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kWorkload =
    "workload short_sum\n"
    "input A: bf16[16, 256]\n"
    "input B: bf16[256, 32]\n"
    "output C[i: 16, j: 32] = sum(k: 256) A[i, k] * B[k, j]\n";
// Each step of the reduction covers the whole output: partial sums are stored as bf16.
constexpr absl::string_view kTrace =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "reorder(l2, l0, l1)\n";

class RefusedRecordTest : public ::testing::Test {
 protected:
  RefusedRecordTest() {
    std::ofstream(workload_) << kWorkload;
    std::ofstream(trace_) << kWorkload << kTrace;
  }
  nlohmann::json BestRecord() const {
    const Result best = home_.Hone({"best", workload_, "--json"});
    EXPECT_TRUE(best.code == 0 || best.code == 3) << best.errors;
    return OneLineOfJson(best.output)["best"];
  }

  // Publishes the trace as a best measured by version 6 of the code generator. Everything else is
  // as in a real measurement on this machine.
  void PublishOldRecord() {
    ASSERT_TRUE(Eventually([&] { return home_.Keeper() == 0; }));
    HONE_ASSERT_OK_AND_ASSIGN(auto opened, store::OpenSqliteStore(home_.store()));
    store::Store& store = *opened;
    HONE_ASSERT_OK_AND_ASSIGN(const auto records, store.Query({.best_only = true}));
    ASSERT_EQ(records.size(), 1u);
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(kWorkload));
    HONE_ASSERT_OK_AND_ASSIGN(const auto space,
                              space::GivenTraceSpace(workload, absl::StrCat(kWorkload, kTrace)));
    ASSERT_THAT(store::PutText(store, space->digest(), space->text()), IsOk());
    record::Record old = records.front();
    // The best of the search may be the default schedule, which is trial 0.
    old.trial = 1;
    old.is_default = false;
    old.candidate = {space->digest(), {}};
    old.result.latency_ns /= 100;
    for (double& sample : old.result.samples_ns) sample /= 100;
    old.result.facts.program_digest.clear();
    old.environment.codegen_version = 6;
    HONE_ASSERT_OK_AND_ASSIGN(const auto appended, store::Append(store, old));
    old_record_ = appended.id;
    ASSERT_THAT(store::PublishBest(store, appended.id), IsOk());
  }

  HoneHome home_;
  TemporaryFolder files_;
  const std::string workload_ = files_ / "short_sum.hone", trace_ = files_ / "short_sum.trace";
  int64_t old_record_ = 0;
};

TEST_F(RefusedRecordTest, IsQuarantinedAndReplaced) {
  const Result first = home_.Hone({"tune", workload_, "--trials", "2", "--json"});
  ASSERT_EQ(first.code, 0) << first.errors;
  ASSERT_NO_FATAL_FAILURE(PublishOldRecord());
  EXPECT_EQ(BestRecord()["record"], old_record_);

  const Result revalidated = home_.Hone({"revalidate", "--json"});
  ASSERT_EQ(revalidated.code, 0) << revalidated.errors;
  const nlohmann::json report = OneLineOfJson(revalidated.output)["revalidated"];
  ASSERT_EQ(report.size(), 1u) << revalidated.output;
  EXPECT_EQ(report[0]["quarantined_count"], 1) << revalidated.output;
  const Result quarantined = home_.Hone({"records", "query", "--json"});
  EXPECT_THAT(quarantined.output, HasSubstr("partial sums of C would be rounded to bf16"));

  const Result again = home_.Hone({"tune", workload_, "--trials", "4", "--json"});
  ASSERT_EQ(again.code, 0) << again.errors;
  const nlohmann::json best = BestRecord();
  ASSERT_TRUE(best.is_object()) << best;
  EXPECT_NE(best["record"], old_record_);
  EXPECT_THAT(std::string(best["trace"]), Not(HasSubstr("reorder(l2, l0, l1)")));
}

TEST_F(RefusedRecordTest, RejectionSuggestsARemedy) {
  const Result checked = home_.Hone({"schedule", trace_, "--check"});
  EXPECT_EQ(checked.code, 1) << checked.output;
  EXPECT_THAT(checked.output + checked.errors,
              HasSubstr("partial sums of C would be rounded to bf16 at each of the 256 iterations "
                        "of loop k; after cache_write they are kept in f32"));
}

}  // namespace
}  // namespace hone::integration

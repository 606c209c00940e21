// `hone dataset`: a search is measured, collected, divided and described.

#include "common/record/dataset.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;

TEST(Dataset, MeasurementsAreCollectedDividedAndDescribed) {
  TemporaryFolder folder;
  HoneHome home;
  const Result none = home.Hone({"dataset", "build", "-o", folder / "none.h5"});
  EXPECT_EQ(none.code, 3) << none.errors;
  for (const char* k : {"k=32", "k=48"}) {
    const Result tuned = home.Hone(
        {"tune", "matmul", "m=48", "n=64", k, "--trials", "8", "--strategy", "random", "--json"});
    ASSERT_EQ(tuned.code, 0) << tuned.errors;
  }
  const std::string all = folder / "all.h5";
  const Result built = home.Hone({"dataset", "build", "-o", all, "--json"});
  ASSERT_EQ(built.code, 0) << built.errors;
  const nlohmann::json build = OneLineOfJson(built.output);
  EXPECT_EQ(build["record_count"], 16);
  EXPECT_GE(build["unsuitable_count"], 2) << "defaults and confirmations";

  const Result described = home.Hone({"dataset", "stat", all, "--json"});
  ASSERT_EQ(described.code, 0) << described.errors;
  const nlohmann::json stat = OneLineOfJson(described.output);
  EXPECT_EQ(stat["record_count"], 16);
  EXPECT_EQ(stat["tasks"].size(), 2);
  ASSERT_EQ(stat["devices"].size(), 1);
  for (const nlohmann::json& source : stat["sources"]) EXPECT_EQ(source["source"], "random");

  const std::string held_out = stat["tasks"][0]["task"];
  const Result divided = home.Hone({"dataset", "split", all, "--by", "task", "--held-out-names",
                                    held_out, "-o", folder / "part"});
  ASSERT_EQ(divided.code, 0) << divided.errors;
  EXPECT_THAT(divided.output, HasSubstr("part-test.h5: 8 records of 1 task"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto test, record::Dataset::Open(folder / "part-test.h5"));
  EXPECT_EQ(test->size(), 8);

  // An export and the store give the same measurements.
  const Result exported = home.Hone({"records", "export", "-o", folder / "records.jsonl"});
  ASSERT_EQ(exported.code, 0) << exported.errors;
  const Result joined = home.Hone({"dataset", "build", folder / "records.jsonl",
                                   folder / "part-test.h5", "-o", folder / "joined.h5", "--json"});
  ASSERT_EQ(joined.code, 0) << joined.errors;
  EXPECT_EQ(OneLineOfJson(joined.output)["record_count"], 24);
}

// Schedules of real records are replayed, compiled and checked like any others.
// The tasks have less than 0.1 GFLOP: more of it in a simulated latency would exceed the simulated
// peak.
TEST(Dataset, AReplayedForeignScheduleRuns) {
  TemporaryFolder folder;
  HoneHome home;
  const std::string all = folder / "ansor.h5";
  const Result built = home.Hone(
      {"dataset", "build", "tests/integration/testdata/dataset_ansor.json", "-o", all, "--json"});
  ASSERT_EQ(built.code, 0) << built.errors;
  const nlohmann::json format = OneLineOfJson(built.output)["formats"][0];
  EXPECT_EQ(format["known_workload_count"], 3);
  EXPECT_EQ(format["replayed_count"], 2);
  EXPECT_EQ(format["not_replayed"], nlohmann::json({{"step RF", 1}}));
  const Result described = home.Hone({"dataset", "stat", all});
  EXPECT_THAT(described.output,
              HasSubstr("ansor: replayed 2 of 3 records (not replayed: 1 step RF)"));

  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, record::Dataset::Open(all));
  int checked = 0;
  for (const std::string& space : dataset->spaces()) {
    if (absl::StartsWith(space, "foreign ")) continue;
    const std::string file = folder / "replayed.trace";
    ASSERT_THAT(WriteFileAtomically(file, space), IsOk());
    const Result run = home.Hone({"schedule", file, "--check", "--json"});
    EXPECT_EQ(run.code, 0) << run.errors << run.output << space;
    ++checked;
  }
  EXPECT_EQ(checked, 2);
}

}  // namespace
}  // namespace hone::integration

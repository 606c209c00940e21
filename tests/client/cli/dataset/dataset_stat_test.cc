#include "client/cli/dataset/dataset_stat.h"

#include <cmath>
#include <string>

#include "common/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/dataset/made_dataset.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

TEST(DatasetStatTest, TextAndJsonAreTheGoldenOnes) {
  TemporaryFolder folder;
  MakeDataset(folder / "all.h5", 1000);
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      record::Dataset::Open(folder / "all.h5", record::Dataset::Spaces::kInFile));
  HONE_ASSERT_OK_AND_ASSIGN(const DatasetStat stat, StatDataset(*dataset));
  ExpectGolden("tests/client/cli/testdata/dataset_stat.txt", StatText(stat, 100));
  const nlohmann::ordered_json json = StatJson(stat);
  EXPECT_EQ(json["record_count"], 1000);
  EXPECT_EQ(json["candidate_count"], 40);
  EXPECT_EQ(json["devices"].size(), 2);
  EXPECT_EQ(json["tasks"].size(), 10);
  EXPECT_EQ(json["sources"].size(), 4);
}

TEST(DatasetStatTest, CountsReplayedRecordsOfForeignLogs) {
  TemporaryFolder folder;
  HONE_ASSERT_OK_AND_ASSIGN(const auto writer, record::DatasetWriter::Create(folder / "all.h5"));
  const ForeignRecord foreign{.steps = nlohmann::json::array(), .reason = "step RF"};
  for (const std::string& space :
       {std::string("workload a\ntrace 1\n"), ForeignSpace("ansor", foreign),
        std::string("workload b\ntrace 1\n"), ForeignSpace("ansor", foreign),
        std::string("foreign ansor: unknown workload\n[]")}) {
    ASSERT_THAT(writer->Append({.target = writer->Target({"llvm", "imported from ansor"}),
                                .task = writer->Task({"workload a\n", "", 0}),
                                .space = writer->Space(space),
                                .source = writer->Source("ansor"),
                                .latency_ns = 1}),
                IsOk());
  }
  ASSERT_THAT(writer->Finish(), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      record::Dataset::Open(folder / "all.h5", record::Dataset::Spaces::kInFile));
  HONE_ASSERT_OK_AND_ASSIGN(const DatasetStat stat, StatDataset(*dataset));
  EXPECT_THAT(StatText(stat, 100),
              testing::HasSubstr("\nansor: replayed 2 of 5 records (not replayed: 2 step RF, 1 "
                                 "unknown workload)\n"));
  const nlohmann::ordered_json replays = StatJson(stat)["replays"];
  ASSERT_EQ(replays.size(), 1);
  EXPECT_EQ(replays[0]["replayed_count"], 2);
  EXPECT_EQ(replays[0]["not_replayed"]["step RF"], 2);
}

TEST(LatencySummaryTest, TheMedianIsAccurate) {
  LatencySummary summary;
  EXPECT_EQ(summary.Median(), 0);
  for (int i = 1; i <= 99999; ++i) summary.Add(i * 7);
  EXPECT_EQ(summary.best(), 7);
  EXPECT_NEAR(summary.Median() / 350000, 1, 1e-3);
}

TEST(DistinctCountTest, IsExactForFewAndNearForMany) {
  DistinctCount count(4096);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int64_t i = 0; i < 4096; ++i) count.Add(DigestBuilder().Add(i).Finish().high);
  }
  EXPECT_TRUE(count.is_exact());
  EXPECT_EQ(count.Value(), 4096);
  for (int64_t i = 0; i < 200000; ++i) count.Add(DigestBuilder().Add(i).Finish().high);
  EXPECT_FALSE(count.is_exact());
  EXPECT_NEAR(static_cast<double>(count.Value()), 200000, 200000 * 5 / std::sqrt(4096));
}

}  // namespace
}  // namespace hone::cli

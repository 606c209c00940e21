#include "client/cli/dataset/dataset_split.h"

#include <sys/resource.h>

#include <set>
#include <string>

#include "client/cli/dataset/dataset_stat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/dataset/made_dataset.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

class DatasetSplitTest : public ::testing::Test {
 protected:
  absl::StatusOr<SplitReport> Split(const SplitOptions& options) {
    auto dataset = record::Dataset::Open(folder_ / "all.h5", record::Dataset::Spaces::kInFile);
    auto train = record::DatasetWriter::Create(folder_ / "train.h5");
    auto test = record::DatasetWriter::Create(folder_ / "test.h5");
    absl::StatusOr<SplitReport> report = SplitDataset(**dataset, options, **train, **test);
    if (report.ok()) {
      EXPECT_TRUE((*train)->Finish().ok());
      EXPECT_TRUE((*test)->Finish().ok());
    }
    return report;
  }
  // What the records of a part belong to.
  std::set<std::string> Groups(const std::string& part, const std::string& by) {
    std::set<std::string> names;
    const auto dataset = record::Dataset::Open(folder_ / part);
    const auto records = (*dataset)->Read(0, (*dataset)->size());
    for (const record::DatasetRecord& record : *records) {
      const record::DatasetTask& task = (*dataset)->tasks()[record.task];
      names.insert(by == "task"      ? task.workload
                   : by == "network" ? task.network
                                     : (*dataset)->targets()[record.target].text);
    }
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(DatasetSplitTest, NoTaskNetworkOrDeviceIsInBothParts) {
  MakeDataset(folder_ / "all.h5", 500);
  for (const std::string by : {"task", "network", "device"}) {
    int made = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const absl::StatusOr<SplitReport> report = Split({.by = by, .held_out = 0.5, .seed = seed});
      if (absl::IsFailedPrecondition(report.status())) continue;  // one part would be empty
      ASSERT_THAT(report, IsOk());
      ++made;
      EXPECT_EQ(report->train_records + report->test_records, 500);
      const std::set<std::string> train = Groups("train.h5", by), test = Groups("test.h5", by);
      EXPECT_EQ(train.size(), report->train_groups);
      EXPECT_EQ(test.size(), report->test_groups);
      for (const std::string& name : test) EXPECT_FALSE(train.contains(name)) << by << " " << name;
    }
    EXPECT_GT(made, 0) << by;
  }
}

TEST_F(DatasetSplitTest, TheChoiceDoesNotDependOnTheRecords) {
  MakeDataset(folder_ / "all.h5", 500);
  ASSERT_THAT(Split({.held_out = 0.4, .seed = 3}), IsOk());
  const std::set<std::string> test = Groups("test.h5", "task");
  MakeDataset(folder_ / "all.h5", 130);
  ASSERT_THAT(Split({.held_out = 0.4, .seed = 3}), IsOk());
  EXPECT_EQ(Groups("test.h5", "task"), test);
}

TEST_F(DatasetSplitTest, NamesAreHeldOut) {
  MakeDataset(folder_ / "all.h5", 100);
  ASSERT_THAT(Split({.by = "network", .names = {"net-1"}}), IsOk());
  EXPECT_EQ(Groups("test.h5", "network"), std::set<std::string>{"net-1"});
  ASSERT_THAT(Split({.by = "task", .names = {"op3", "op4"}}), IsOk());
  EXPECT_EQ(Groups("test.h5", "task"), (std::set<std::string>{"workload op3\n", "workload op4\n"}));
  ASSERT_THAT(Split({.by = "device", .names = {"cpu 1"}}), IsOk());
  EXPECT_EQ(Groups("test.h5", "device"), std::set<std::string>{"target 1"});
  EXPECT_THAT(Split({.by = "network", .names = {"net-9"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'net-9' is no network")));
}

TEST_F(DatasetSplitTest, AnEmptyPartIsAnError) {
  MakeDataset(folder_ / "all.h5", 100);
  EXPECT_THAT(Split({.held_out = 0}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                               HasSubstr("would be in the training part")));
  EXPECT_THAT(Split({.held_out = 1}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                               HasSubstr("would be in the test part")));
}

// The records that the second dataset has more would take 17 MiB. The first fills the caches of
// HDF5.
TEST_F(DatasetSplitTest, ManyRecordsDoNotNeedMuchMemory) {
  const auto resident = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  MakeDataset(folder_ / "all.h5", 2 * record::kDatasetPage);
  ASSERT_THAT(Split({.held_out = 0.5}), IsOk());
  const int64_t before_mib = resident();
  MakeDataset(folder_ / "all.h5", 300000);
  HONE_ASSERT_OK_AND_ASSIGN(const SplitReport report, Split({.held_out = 0.5}));
  EXPECT_EQ(report.train_records + report.test_records, 300000);
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      record::Dataset::Open(folder_ / "all.h5", record::Dataset::Spaces::kInFile));
  HONE_ASSERT_OK_AND_ASSIGN(const DatasetStat stat, StatDataset(*dataset));
  EXPECT_EQ(stat.records, 300000);
  EXPECT_LT(resident() - before_mib, 12) << "MiB";
}

}  // namespace
}  // namespace hone::cli

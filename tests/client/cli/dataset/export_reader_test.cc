#include "client/cli/dataset/export_reader.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/dataset/dataset_build.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

nlohmann::json Record(double latency_ns) {
  return {{"workload", "w"},
          {"operator", "matmul"},
          {"target", "x86_64-generic-sse-2c-01234567"},
          {"tolerance", 0.0},
          {"policy", {{"name", "screen"}}},
          {"space", "s"},
          {"decisions", {4, 7}},
          {"outcome", "ok"},
          {"latency_ns", latency_ns},
          {"dispersion", 0.01},
          {"reference_drift", 2.0},
          {"environment", {{"cpu", "a cpu"}}},
          {"job", "7"},
          {"created_unix_ms", 1000},
          {"is_default", false},
          {"proposer", ""},
          {"quarantined", false}};
}

class ExportReaderTest : public ::testing::Test {
 protected:
  // Builds a dataset from an export with these records, to `out_`.
  absl::Status Build(const std::vector<nlohmann::json>& records, bool complete = true) {
    std::string text =
        "{\"hone_records\":1,\"store\":\"0123456789abcdef\"}\n"
        "{\"digest\":\"w\",\"text\":\"workload matmul\\n\"}\n{\"digest\":\"s\",\"text\":\"a\"}\n";
    for (const nlohmann::json& record : records)
      absl::StrAppend(&text, nlohmann::json{{"record", record}}.dump(), "\n");
    if (complete) text += "{\"end\":{}}\n";
    return BuildText(text);
  }
  absl::Status BuildText(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder_ / "records.jsonl", text).ok());
    auto writer = record::DatasetWriter::Create(out_);
    DatasetBuilder builder(writer->get(), filter_);
    report_ = {};
    const absl::Status status = AddInput(folder_ / "records.jsonl", builder, report_);
    added_ = builder.added();
    return status.ok() ? (*writer)->Finish() : status;
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_ / "out.h5";
  DatasetFilter filter_;
  BuildReport report_;
  int64_t added_ = 0;
};

TEST_F(ExportReaderTest, ReadsScreenedMeasurements) {
  nlohmann::json confirmed = Record(1), quarantined = Record(2), base = Record(3),
                 crash = Record(0), imported = Record(500);
  confirmed["policy"]["name"] = "confirm";
  quarantined["quarantined"] = true;
  base["is_default"] = true;
  crash["outcome"] = "crash";
  imported["job"] = "fedcba9876543210/9";
  crash["proposer"] = "notebook";
  ASSERT_THAT(Build({Record(1000), confirmed, quarantined, base, crash, imported}), IsOk());
  EXPECT_EQ(report_.unsuitable, 3);
  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, record::Dataset::Open(out_));
  ASSERT_EQ(dataset->size(), 3);
  HONE_ASSERT_OK_AND_ASSIGN(const auto records, dataset->Read(0, 3));
  EXPECT_EQ(records[0].latency_ns, 500) << "scaled to the speed of the machine";
  EXPECT_EQ(records[0].decisions, (std::vector<int64_t>{4, 7}));
  EXPECT_EQ(records[1].outcome, record::Outcome::kCrash);
  EXPECT_EQ(dataset->sources()[records[0].source], "store 0123456789abcdef");
  EXPECT_EQ(dataset->sources()[records[1].source], "proposed by notebook");
  EXPECT_EQ(dataset->sources()[records[2].source], "store fedcba9876543210");
  EXPECT_EQ(dataset->tasks()[0].workload, "workload matmul\n");
  EXPECT_EQ(dataset->targets()[0].machine, "a cpu");
}

TEST_F(ExportReaderTest, FiltersAndJoinsDatasets) {
  ASSERT_THAT(Build({Record(1000), Record(2000)}), IsOk());
  auto writer = record::DatasetWriter::Create(folder_ / "joined.h5");
  for (const DatasetFilter& filter :
       {DatasetFilter{}, DatasetFilter{.target = "x86_64-generic-sse-2c-01234567", .op = "matmul"},
        DatasetFilter{.op = "conv2d"}, DatasetFilter{.network = "net"},
        DatasetFilter{.since_unix_ms = 1001}, DatasetFilter{.target = "another"}}) {
    DatasetBuilder builder(writer->get(), filter);
    ASSERT_THAT(AddInput(out_, builder, report_), IsOk());
    const bool all = filter.since_unix_ms == 0 && filter.network.empty() && filter.op != "conv2d" &&
                     filter.target != "another";
    EXPECT_EQ(builder.added(), all ? 2 : 0);
    EXPECT_EQ(builder.left_out(), all ? 0 : 2);
  }
  ASSERT_THAT((*writer)->Finish(), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, record::Dataset::Open(folder_ / "joined.h5"));
  EXPECT_EQ(dataset->size(), 4);
  EXPECT_EQ(dataset->tasks().size(), 1);
}

TEST_F(ExportReaderTest, ErrorsNameTheFileAndTheLine) {
  nlohmann::json wrong = Record(1), missing = Record(1), infinite = Record(1);
  wrong["decisions"] = {"x"};
  missing.erase("job");
  infinite["latency_ns"] = nullptr;
  for (const auto& [record, field] : {std::pair(wrong, "decisions"), std::pair(missing, "job"),
                                      std::pair(infinite, "latency_ns")}) {
    EXPECT_THAT(Build({Record(5), record}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("records.jsonl: line 5: the field \"", field))));
  }
  EXPECT_THAT(Build({Record(5)}, /*complete=*/false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is truncated")));
  EXPECT_THAT(BuildText(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is empty")));
}

}  // namespace
}  // namespace hone::cli

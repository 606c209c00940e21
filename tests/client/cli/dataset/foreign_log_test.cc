#include "client/cli/dataset/foreign_log.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/dataset/dataset_build.h"
#include "client/cli/dataset/foreign_workload.h"
#include "common/base/file.h"
#include "common/operator/operator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Ansor(const std::string& costs = "[0.001, 0.003]", const std::string& error = "0",
                  const std::string& steps = R"(["SP", 2, 0, 64, [2, 1, 4], 1], ["FU", 2, [0, 1]],
                  ["AN", 2, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$8"], ["CA", 1, 2, 3])") {
  return absl::StrReplaceAll(
      absl::StrCat(R"({"i": [["[\"matmul_auto_scheduler_test\", 64, 32, 16]", "llvm -keys=cpu"],)",
                   "[[], [", steps, "]]], \"r\": [", costs, ", ", error,
                   R"(, 0.33, 1607112214], "v": "v0.6"})"),
      {{"\n", ""}});
}
std::string AutoTvm(const std::string& costs = "[0.001]", const std::string& error = "0") {
  return absl::StrCat(
      R"({"input": ["llvm", "dense_nopack.x86", [["TENSOR", [8, 32], "float32"],)",
      R"(["TENSOR", [16, 32], "float32"], null, "float32"], {}], "config": {"index": 7,)",
      R"("code_hash": null, "entity": [["tile_y", "sp", [-1, 4]], ["unroll", "ot", true],)",
      R"(["order", "re", [1, 0]], ["ann", "an", ["vec"]]]}, "result": [)", costs, ", ", error,
      R"(, 1.5, 1607112214.25], "version": 0.2, "tvm_version": "0.8"})");
}
std::string MetaSchedule(const std::string& seconds = "[0.002]",
                         const std::string& name = "SamplePerfectTile") {
  return absl::StrCat(R"([1, [[[["GetBlock", [], ["C", "main"], ["b0"]], [")", name,
                      R"(", ["l1"], [4, 64], ["v0"]]], [[1, [2, 2, 4, 8]]]], )", seconds,
                      R"(, {"kind": "llvm"}, [["TENSOR", "float32", [8, 8]]]]])");
}

class ForeignLogTest : public ::testing::Test {
 protected:
  void Build(const std::string& text, const std::string& name = "log.json") {
    ASSERT_THAT(WriteFileAtomically(folder_ / name, text), IsOk());
    BuildFile(folder_ / name);
  }
  void BuildFile(const std::string& path) {
    auto writer = record::DatasetWriter::Create(folder_ / "out.h5");
    DatasetBuilder builder(writer->get(), {});
    report_ = {};
    ASSERT_THAT(AddInput(path, builder, report_), IsOk());
    ASSERT_THAT((*writer)->Finish(), IsOk());
    HONE_ASSERT_OK_AND_ASSIGN(dataset_, record::Dataset::Open(folder_ / "out.h5"));
    HONE_ASSERT_OK_AND_ASSIGN(records_, dataset_->Read(0, dataset_->size()));
  }

  TemporaryFolder folder_;
  BuildReport report_;
  std::unique_ptr<record::Dataset> dataset_;
  std::vector<record::DatasetRecord> records_;
};

TEST_F(ForeignLogTest, ReadsEachFormat) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "database_workload.json",
                                  "[\"123\", \"bW9k\"]\n[\"-456\", \"bW9k\"]\n"),
              IsOk());
  Build(absl::StrCat("# a comment\n\n", Ansor(), "\n", AutoTvm(), "\n", MetaSchedule(), "\n"));
  EXPECT_THAT(report_.problems, ElementsAre());
  ASSERT_EQ(records_.size(), 3);
  EXPECT_NEAR(records_[0].latency_ns, 2e6, 1e-3);
  EXPECT_EQ(records_[0].created_unix_ms, 1607112214000);
  EXPECT_EQ(records_[1].created_unix_ms, 1607112214250);
  EXPECT_THAT(dataset_->sources(), ElementsAre("ansor", "autotvm", "metaschedule"));
  EXPECT_EQ(dataset_->targets()[0].text, "llvm -keys=cpu");
  EXPECT_EQ(dataset_->targets()[0].machine, "imported from ansor");
  EXPECT_EQ(dataset_->targets()[2].text, R"({"kind":"llvm"})");
  EXPECT_EQ(dataset_->tasks()[0].workload,
            op::BuildWorkload("matmul", {"m=64", "n=32", "k=16"})->ToText());
  EXPECT_THAT(dataset_->tasks()[1].workload, StartsWith("workload dense_nt\n"));
  EXPECT_EQ(dataset_->tasks()[2].workload,
            R"(foreign metaschedule -456 [["TENSOR","float32",[8,8]]])");
  EXPECT_THAT(dataset_->spaces()[0],
              StartsWith("foreign ansor: step CA\n[[\"SP\",2,0,64,[2,1,4],1],[\"FU\",2,[0,1]]"));
  EXPECT_EQ(report_.foreign["ansor"].known, 1);
  EXPECT_EQ(report_.foreign["metaschedule"].known, 0);
  EXPECT_EQ(report_.foreign["ansor"].replay.ToText(),
            "replayed 0 of 1 record (not replayed: 1 step CA)");
  EXPECT_EQ(report_.foreign["autotvm"].replay.ToText(),
            "replayed 0 of 1 record (not replayed: 1 template dense_nopack)");
  EXPECT_EQ(report_.foreign["metaschedule"].replay.ToText(),
            "replayed 0 of 1 record (not replayed: 1 unknown workload)");
}

// A schedule that is replayed is stored as a trace; one with a loop that does not exist is
// malformed.
TEST_F(ForeignLogTest, ReplaysSchedules) {
  Build(absl::StrCat(Ansor("[1]", "0", R"(["SP", 2, 0, 64, [2, 1, 4], 1], ["AN", 2, 0, 3])"), "\n",
                     Ansor("[1]", "0", R"(["AN", 2, 3, 3])"), "\n",
                     Ansor("[1]", "0", R"(["AN", 2, -1, 3])"), "\n",
                     Ansor("[1]", "0", R"(["SP", 2, 0, 64, [3], 1])"), "\n"));
  ASSERT_EQ(records_.size(), 1);
  EXPECT_EQ(dataset_->spaces()[0],
            absl::StrCat(dataset_->tasks()[0].workload,
                         "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0, 3)\n"
                         "l3, l4, l5, l6 = split(l0, 8, 2, 1, 4)\nparallel(l3)\n"));
  EXPECT_EQ(report_.foreign["ansor"].replay.replayed, 1);
  EXPECT_EQ(report_.foreign["ansor"].skipped, 3);
  EXPECT_THAT(report_.problems, ElementsAre(HasSubstr(":2: the step [\"AN\",2,3,3] names a loop"),
                                            HasSubstr(":3: the step AN has other arguments"),
                                            HasSubstr(":4: the step [\"SP\",2,0,64,[3],1] has")));
}

TEST_F(ForeignLogTest, CostsThatAreNoTimesAreOutcomes) {
  using record::Outcome;
  std::string text;
  std::vector<Outcome> expected;
  for (const char* costs : {"[1e10]", "[Infinity]", "[-Infinity]", "[NaN]", "[inf]", "[-1]", "[0]",
                            "[]", "[1e999]", "[0.1, 1e10]"}) {
    absl::StrAppend(&text, Ansor(costs), "\n", AutoTvm(costs), "\n");
    expected.insert(expected.end(), 2, Outcome::kInvalid);
  }
  const Outcome of_error[] = {
      Outcome::kInvalid,     Outcome::kCompileError,   Outcome::kCompileError, Outcome::kCrash,
      Outcome::kWrongOutput, Outcome::kCompileTimeout, Outcome::kRunTimeout,   Outcome::kCrash};
  for (int error = 1; error <= 8; ++error) {
    absl::StrAppend(&text, Ansor("[1e10]", absl::StrCat(error)), "\n",
                    AutoTvm(R"(["a message"])", absl::StrCat(error)), "\n");
    expected.insert(expected.end(), 2, of_error[error - 1]);
  }
  absl::StrAppend(&text, MetaSchedule("null"), "\n", MetaSchedule("[1e10]"), "\n");
  expected.insert(expected.end(), 2, Outcome::kInvalid);
  Build(text);
  std::vector<Outcome> outcomes;
  for (const record::DatasetRecord& record : records_) outcomes.push_back(record.outcome);
  // JSON has no number as large as 1e999: the line is malformed.
  EXPECT_EQ(outcomes.size() + report_.unread_lines, expected.size());
  EXPECT_LE(report_.unread_lines, 2);
  expected.erase(expected.begin(), expected.begin() + report_.unread_lines);
  EXPECT_EQ(outcomes, expected);
}

TEST_F(ForeignLogTest, MalformedLinesAreSkippedAndNamed) {
  Build(absl::StrCat(Ansor("[1]", "0", R"(["XX", 1])"), "\n", Ansor("[1]", "0", R"(["SP", 1])"),
                     "\n", Ansor("[\"x\"]"), "\n", Ansor("[1]", "99"), "\n",
                     MetaSchedule("[1]", "Conjure"), "\n", Ansor().substr(0, 100), "\n{}\n",
                     std::string(100, '['), std::string(100, ']'), "\n", Ansor()));
  EXPECT_EQ(records_.size(), 1);
  EXPECT_EQ(report_.foreign["ansor"].skipped, 4);
  EXPECT_EQ(report_.foreign["metaschedule"].skipped, 1);
  EXPECT_EQ(report_.unread_lines, 3);
  ASSERT_EQ(report_.problems.size(), kMostProblems);
  const char* expected[] = {":1: unknown step XX", ":2: the step SP has other arguments",
                            ":3: a cost is not a number", ":4: unknown error number 99",
                            ":5: unknown instruction Conjure"};
  for (size_t i = 0; i < kMostProblems; ++i)
    EXPECT_THAT(report_.problems[i], AllOf(HasSubstr("log.json"), HasSubstr(expected[i])));
}

// Each step of a stage that waits may name a split, whose factors would be copied each time.
TEST_F(ForeignLogTest, ALongListInAStepIsRefused) {
  const auto ones = [](size_t count) {
    return absl::StrCat("[", absl::StrJoin(std::vector<int>(count, 1), ","), "]");
  };
  const auto steps = [&](const std::string& factors, const std::string& sources) {
    return absl::StrCat(R"(["RF", 2, 0, 0], ["SP", 2, 0, 64, )", factors,
                        R"(, 1], ["FFSP", 2, 0, )", sources, ", 0, 1]");
  };
  Build(absl::StrCat(Ansor("[1]", "0", steps(ones(64), ones(64))), "\n",
                     Ansor("[1]", "0", steps(ones(65), ones(1))), "\n",
                     Ansor("[1]", "0", steps(ones(1), ones(65))), "\n"));
  EXPECT_EQ(records_.size(), 1);
  EXPECT_THAT(report_.problems,
              ElementsAre(AllOf(HasSubstr(":2: the step SP has a list of 65"), HasSubstr("64")),
                          HasSubstr(":3: the step FFSP has a list of 65")));
}

TEST_F(ForeignLogTest, ALineThatIsTooLongIsSkipped) {
  Build(absl::StrCat(std::string(kMostForeignLineBytes + 1, ' '), "\n", Ansor(), "\n"));
  EXPECT_EQ(records_.size(), 1);
  EXPECT_THAT(report_.problems, ElementsAre(HasSubstr(":1: longer than 4 MiB")));
}

}  // namespace
}  // namespace hone::cli

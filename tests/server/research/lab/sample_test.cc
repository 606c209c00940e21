#include "server/research/lab/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/record/dataset.h"
#include "common/target/device_list.h"
#include "server/research/lab/judge.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

constexpr char kList[] = "tests/bench/sample/tasks.txt";

// Which tasks are held out must never change: results before and after could not be compared, and
// constants may have been chosen by the tasks that are not held out.
TEST(SampleTasksTest, HoldOutTheSameTasksForEver) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<SampleTask> tasks, ReadSampleTasks(kList));
  std::string text;
  std::set<std::string> families;
  for (const SampleTask& task : tasks) {
    absl::StrAppend(&text, task.held_out ? "held out     " : "development  ", task.name, "\n");
    families.insert(task.family);
  }
  EXPECT_GE(families.size(), 12u);
  ExpectGolden("tests/server/research/lab/testdata/tasks.txt", text);
}

TEST(SampleTasksTest, RefusesMalformedLists) {
  const TemporaryFolder folder;
  const std::string list = folder / "tasks.txt";
  const auto refused = [&](const std::string& text, absl::StatusCode code, const char* why) {
    std::ofstream(list) << text;
    EXPECT_THAT(ReadSampleTasks(list), StatusIs(code, HasSubstr(why))) << text;
  };
  refused("matmul m=8 n=8 k=8\nmatmul m=8", absl::StatusCode::kInvalidArgument, "tasks.txt:2: ");
  refused("# twice\nmatmul m=8 n=8 k=8\n\nmatmul n=8 m=8 k=8", absl::StatusCode::kInvalidArgument,
          "tasks.txt:4: matmul n=8 m=8 k=8: this task occurs twice");
  refused("matmull m=8 n=8 k=8", absl::StatusCode::kNotFound, "matmul");
  refused("net/none.hone", absl::StatusCode::kNotFound, "tasks.txt:1: net/none.hone");
}

TEST(SampleTasksTest, EveryTaskHasASpaceOnGpus) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<SampleTask> tasks, ReadSampleTasks(kList));
  const target::Target target = *target::TargetByName("generic/opencl");
  for (const SampleTask& task : tasks) EXPECT_EQ(WhyNoSpace(task, target), "") << task.name;
}

// Programs in place of hone and hone-runner.
class CollectTest : public testing::Test {
 protected:
  void WriteProgram(const std::string& name, const std::string& script) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  CollectOptions OptionsOf(std::vector<SampleTask> tasks) {
    return {.tasks = std::move(tasks),
            .program_folder = folder_.path(),
            .work_folder = folder_ / "work",
            .out = folder_ / "sample.h5"};
  }
  std::string TextOf(const std::string& name) {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const TemporaryFolder folder_;
};

TEST_F(CollectTest, LearningDoesNotTouchAStoreThatExists) {
  std::ofstream(folder_ / "hone.db") << "precious";
  EXPECT_THAT(Learn("tests/bench/sample/x86_64-znver3-avx2-1c.h5", folder_ / "hone.db"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("exists")));
  EXPECT_EQ(*ReadFile(folder_ / "hone.db"), "precious");
  std::ofstream(folder_ / "no.h5") << "not a dataset";
  EXPECT_FALSE(Learn(folder_ / "no.h5", folder_ / "new.db").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.db"));
}

// Instead of measuring, it asks the builder. The costs are marked, and nothing takes them for
// measurements.
TEST_F(CollectTest, ModelsTheCostsOfACpuThatIsNotHere) {
  WriteProgram("hone-builder",
               absl::StrCat("echo \"$*\" >> ", folder_ / "asked",
                            "\nwhile read -r line; do n=$((n + 1)); if [ $n = 3 ]; then echo "
                            "'{\"error\": \"too large\"}'; else echo \"{\\\"cycles\\\": $((1000 + "
                            "n))}\"; fi; done\n"));
  std::ofstream(folder_ / "tasks.txt") << "matmul m=32 n=32 k=32\nadd m=64 n=64\n";
  CollectOptions options = OptionsOf(*ReadSampleTasks(folder_ / "tasks.txt"));
  options.target = "arm/cortex-a76";
  options.uniform = 6;
  options.drafted = 3;
  ASSERT_THAT(Collect(options), IsOk());
  EXPECT_THAT(TextOf("asked"),
              testing::ContainsRegex("^cost --target target arch=aarch64 .*\n.*\n$"));
  {
    HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, record::Dataset::Open(options.out));
    EXPECT_EQ(dataset->targets()[0].machine, "modelled: cortex-a76 with 4 cores");
    EXPECT_EQ(dataset->tasks().size(), 2u);
    EXPECT_THAT(dataset->sources(), testing::ElementsAre("random", "draft"));
    ASSERT_EQ(dataset->size(), 18);
    HONE_ASSERT_OK_AND_ASSIGN(const auto records, dataset->Read(0, 18));
    EXPECT_EQ(records[0].latency_ns, 1001);
    EXPECT_EQ(records[2].latency_ns, 0);
    EXPECT_EQ(records[2].outcome, record::Outcome::kInvalid);
    EXPECT_EQ(records[8].latency_ns, 1009);
  }
  ASSERT_THAT(Collect(options), IsOk());
  EXPECT_THAT(TextOf("asked"), testing::ContainsRegex("^[^\n]*\n[^\n]*\n$"))
      << "nothing is repeated";

  EXPECT_THAT(Learn(options.out, folder_ / "learned.db"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("modelled costs")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "learned.db"));
  EXPECT_THAT(BestOfSample(options.out),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("modelled costs")));
  options.target = "native";
  EXPECT_THAT(Collect(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("sample.h5 has modelled costs")));
  options.target = "arm/cortex-a76";
  options.out = "tests/bench/sample/x86_64-znver3-avx2-1c.h5";
  EXPECT_THAT(Collect(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("has measurements; give modelled costs")));
  options.target = "arm/mali-g52";
  EXPECT_THAT(Collect(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("a GPU's cost is not modelled")));
}

TEST_F(CollectTest, SaysWhyTheBuilderFailed) {
  WriteProgram("hone-builder", "echo 'no such CPU' >&2; exit 2\n");
  std::ofstream(folder_ / "tasks.txt") << "add m=64 n=64\n";
  CollectOptions options = OptionsOf(*ReadSampleTasks(folder_ / "tasks.txt"));
  options.target = "arm/cortex-a76";
  options.uniform = options.drafted = 2;
  EXPECT_THAT(Collect(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no such CPU")));
}

TEST_F(CollectTest, ATaskThatFailsDoesNotEndTheCollection) {
  WriteProgram("hone", absl::StrCat("grep -q 'k: 9' \"$2\" && exit 1\necho \"$4\" >> ",
                                    folder_ / "tuned", "\n"));
  std::ofstream(folder_ / "tasks.txt") << "matmul m=8 n=8 k=9\nmatmul m=8 n=8 k=8\n";
  EXPECT_THAT(Collect(OptionsOf(*ReadSampleTasks(folder_ / "tasks.txt"))),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("1 of 2 tasks failed and are not in the dataset; the same command "
                                 "measures them: ")));
  EXPECT_EQ(TextOf("tuned"), "random\ndraft\nportfolio\n") << "of the other task";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "sample.h5"));
}

TEST_F(CollectTest, SkipsTasksWithoutASpaceOnAGpu) {
  target::DeviceList list{.devices = {{.device = "opencl:0",
                                       .name = "GPU without f64",
                                       .target = *target::TargetByName("arm/mali-g52")}}};
  ASSERT_FALSE(list.devices[0].target.HasFeature("fp64"));
  WriteProgram("hone-runner", absl::StrCat("cat <<'END'\n", list.ToJson(), "\nEND\n"));
  WriteProgram("hone", absl::StrCat("echo \"$*\" >> ", folder_ / "tuned", "\n"));
  const auto task = [](const std::string& type) {
    return SampleTask{.name = type,
                      .workload = absl::StrCat("workload scale\ninput A: ", type,
                                               "[8]\noutput C[i: 8] = A[i] + A[i]\n")};
  };
  CollectOptions options = OptionsOf({task("f64"), task("f32")});
  options.target = "opencl";
  options.searched = 0;
  testing::internal::CaptureStderr();
  EXPECT_THAT(Collect(options), IsOk());
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::MatchesRegex("task 1 of 2: f64\nskipped: workload scale computes in f64, which "
                            "opencl.* does not have .*; use f32\ntask 2 of 2: f32\n"));
  EXPECT_THAT(TextOf("tuned"), testing::ContainsRegex("--target opencl .*\n.*--target opencl "));

  options.target = "opencl:1";
  EXPECT_THAT(Collect(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("this machine has only opencl:0")));
}

}  // namespace
}  // namespace hone::lab

#include "client/cli/dataset/ansor_replay.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A task as a key, and its steps.
struct Task {
  const char* name;
  const char* key;
  const char* steps;
  int64_t layout = kLayoutAsGiven;
};

absl::StatusOr<std::string> Replayed(const std::string& key, const std::string& steps,
                                     int64_t layout = kLayoutAsGiven) {
  return ReplayAnsor(WorkloadOfAnsor(key).value(), nlohmann::json::parse(steps), layout);
}

// The steps are those of real records with smaller loops.
constexpr char kConvolutionKey[] =
    R"(["6b7583cf23c7c37d3212cad9d06e58c1", 1, 4, 6, 8, 1, 1, 8, 16, 1, 1, 1, 16, 1, 4, 6, 16])";
constexpr char kConvolutionSteps[] = R"([
    ["CI", 5], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 4, [1, 2, 1], 1],
    ["SP", 3, 8, 6, [3, 1, 2], 1], ["SP", 3, 12, 16, [2, 1, 4], 1], ["SP", 3, 16, 1, [1], 1],
    ["SP", 3, 18, 1, [1], 1], ["SP", 3, 20, 8, [2], 1],
    ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]],
    ["FSP", 6, 0, 1, 2], ["FSP", 6, 3, 2, 2], ["FSP", 6, 6, 3, 2], ["FSP", 6, 9, 4, 2],
    ["RE", 6, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]], ["CA", 3, 6, 7], ["CI", 1],
    ["FU", 6, [0, 1, 2, 3, 4, 5]], ["AN", 6, 0, 3], ["PR", 3, 0, "auto_unroll_max_step$16"],
    ["AN", 3, 21, 2], ["AN", 6, 6, 2]])";
constexpr Task kTasks[] = {
    {"matmul_add", R"(["matmul_add", 16, 8, 16, "float32"])",
     R"([["SP", 2, 0, 16, [2, 1, 4], 1], ["SP", 2, 4, 16, [1, 1, 8], 1], ["SP", 2, 8, 8, [4], 1],
        ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 4, 0, 0, 2], ["FSP", 4, 3, 1, 2],
        ["RE", 4, [0, 3, 1, 4, 2, 5]], ["CA", 2, 4, 3], ["FU", 4, [0, 1]], ["AN", 4, 0, 3],
        ["PR", 2, 0, "auto_unroll_max_step$8"], ["AN", 2, 9, 2], ["AN", 4, 4, 2]])"},
    {"convolution", kConvolutionKey, kConvolutionSteps, kLayoutOfLoops},
    {"convolution that nothing follows",
     R"(["f4380bb1dc62422a69ad4a1a9771f927", 1, 8, 8, 8, 1, 1, 8, 16, 1, 4, 4, 16])",
     R"([["CHW", 3, "local"], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 4, [2, 2, 1], 1],
        ["SP", 3, 8, 4, [4, 1, 1], 1], ["SP", 3, 12, 16, [2, 2, 4], 1], ["SP", 3, 16, 1, [1], 1],
        ["SP", 3, 18, 1, [1], 1], ["SP", 3, 20, 8, [4], 1],
        ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]],
        ["FSP", 4, 0, 1, 2], ["FSP", 4, 3, 2, 2], ["FSP", 4, 6, 3, 2], ["FSP", 4, 9, 4, 2],
        ["RE", 4, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]], ["CA", 3, 4, 7], ["CI", 1],
        ["FU", 4, [0, 1, 2, 3, 4, 5, 6, 7]], ["AN", 4, 0, 3],
        ["PR", 3, 0, "auto_unroll_max_step$16"], ["AN", 3, 21, 2]])",
     kLayoutOfLoops},
    {"average", R"(["69115f188984ae34ede37c3b8ca40b43", 1, 7, 7, 8, 1, 1, 1, 8])",
     R"([["CA", 1, 2, 3], ["FU", 2, [0, 1, 2, 3]], ["AN", 2, 0, 3],
        ["PR", 1, 0, "auto_unroll_max_step$16"]])",
     kLayoutOfLoops},
    {"softmax on a GPU", R"(["7d79c516e212fe1d73f5dbb90eaca2cf", [2, 20], [2, 20]])",
     R"([["SP", 4, 1, 20, [5], 1], ["AN", 4, 2, 6], ["FSP", 3, 1, 0, 1], ["AN", 3, 2, 6],
        ["CA", 3, 4, 0], ["CI", 2], ["AN", 4, 0, 5], ["AN", 1, 0, 6],
        ["PR", 1, 0, "auto_unroll_max_step$0"], ["PR", 3, 0, "auto_unroll_max_step$16"]])"},
    {"copies at the root",
     R"(["00a059b856ac30ac172b6252254479a6", [2, 8], [12, 8], [2, 12], [2, 12]])",
     R"([["SP", 2, 1, 12, [2, 3], 1], ["RE", 2, [1, 2, 0, 4, 3]], ["CHR", 1, "global", [2]],
        ["FU", 2, [0, 1]], ["FFSP", 2, 0, [0], 1, 1], ["AN", 2, 1, 1], ["AN", 2, 0, 3]])"},
    {"a copy that is moved, in parts that do not divide",
     R"(["00a059b856ac30ac172b6252254479a6", [2, 8], [12, 8], [2, 12], [2, 12]])",
     R"([["SP", 2, 1, 12, [3], 1], ["RE", 2, [1, 0, 3, 2]], ["CHR", 1, "local", [2]],
        ["CA", 2, 3, 0], ["FU", 2, [0, 1]], ["SP", 2, 0, 24, [5], 1], ["AN", 2, 1, 2],
        ["AN", 3, 0, 3]])"},
};

std::vector<ir::Values> InputsOf(const ir::Workload& workload) {
  std::vector<ir::Values> inputs;
  for (const ir::BufferId id : workload.Inputs()) {
    int64_t size = 1;
    for (const int64_t extent : workload.tensors[id].shape) size *= extent;
    ir::Values& values = inputs.emplace_back(size);
    for (int64_t i = 0; i < size; ++i)
      values[i] = static_cast<double>((i * 7 + id * 5) % 13 - 6) / 4;
  }
  return inputs;
}

TEST(AnsorReplayTest, TheTraceComputesTheWorkload) {
  for (const Task& task : kTasks) {
    SCOPED_TRACE(task.name);
    const absl::StatusOr<std::string> text = Replayed(task.key, task.steps, task.layout);
    ASSERT_THAT(text, IsOk());
    HONE_ASSERT_OK_AND_ASSIGN(schedule::TraceFile file, schedule::ParseTraceFile(*text));
    const auto workload = std::make_shared<const ir::Workload>(std::move(file.workload));
    HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program,
                              schedule::Replay(workload, file.parsed.trace, {}));
    const std::vector<ir::Values> inputs = InputsOf(*workload);
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*workload, inputs));
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, ir::Interpret(program, inputs));
    ASSERT_EQ(actual.size(), 1);
    ASSERT_EQ(actual[0].size(), expected[0].size());
    for (size_t i = 0; i < actual[0].size(); ++i)
      ASSERT_NEAR(actual[0][i], expected[0][i], 1e-5 * (1 + std::abs(expected[0][i]))) << *text;
  }
}

TEST(AnsorReplayTest, TheLoopsAreThoseOfTheSteps) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string text,
                            Replayed(kConvolutionKey, kConvolutionSteps, kLayoutOfLoops));
  EXPECT_EQ(text.substr(text.find("trace 1\n")), R"(trace 1
b0 = block("Conv")
b1 = block("S0")
b2 = block("Y")
compute_inline(b1)
l0, l1, l2, l3 = loops(b2, 4)
l4, l5, l6 = split(l0, 1, 1, 1)
l7, l8, l9 = split(l1, 2, 1, 2)
l10, l11, l12 = split(l2, 1, 3, 2)
l13, l14, l15 = split(l3, 2, 2, 4)
reorder(l4, l7, l10, l13, l5, l8, l11, l14, l6, l9, l12, l15)
compute_at(b0, l14)
l16, l17, l18, l19, l20, l21, l22 = loops(b0, 7)
l23, l24, l25, l26 = split(l16, 1, 1, 1, 1)
l27, l28, l29, l30 = split(l17, 1, 1, 2, 1)
l31, l32, l33, l34 = split(l18, 1, 1, 1, 2)
l35, l36, l37, l38 = split(l19, 1, 1, 1, 4)
l39, l40 = split(l20, 1, 1)
l41, l42 = split(l21, 1, 1)
l43, l44 = split(l22, 4, 2)
reorder(l23, l27, l31, l35, l24, l28, l32, l36, l39, l41, l43, l25, l29, l33, l37, l40, l42, l44, l26, l30, l34, l38)
l45 = fuse(l4, l7, l10, l13, l5, l8)
parallel(l45)
vectorize(l38)
vectorize(l15)
unroll(l34)
unroll(l44)
unroll(l29)
b3 = cache_read(b0, "W", "global")
transform_layout(b3, "a, b, c, d -> b, a, d / 4, c, d % 4")
)");
}

std::string Product(const std::string& steps) {
  const auto text = Replayed(R"(["matmul_auto_scheduler_test", 8, 8, 8])", steps);
  return text.ok() ? *text : text.status().ToString();
}
int Unrolled(const std::string& steps) {
  int count = 0;
  const std::string text = Product(steps);
  for (size_t at = 0; (at = text.find("\nunroll(", at)) != std::string::npos; ++at) ++count;
  return count;
}

// As UnrollLoop counts: a store for the update, and one to set the result to 0.
TEST(AnsorReplayTest, UnrollsAsManyLoopsAsTheLimitAllows) {
  const auto steps = [](int limit, const std::string& before) {
    return absl::StrCat("[", before, R"(["PR", 2, 0, "auto_unroll_max_step$)", limit, "\"]]");
  };
  const std::pair<int, int> inside[] = {{0, 0},  {7, 0},   {8, 1},  {71, 1},
                                        {72, 2}, {575, 2}, {576, 3}};
  for (const auto& [limit, loops] : inside) EXPECT_EQ(Unrolled(steps(limit, "")), loops) << limit;
  const std::pair<int, int> outside[] = {{7, 0}, {8, 1}, {63, 1}, {64, 2}, {511, 2}, {512, 3}};
  for (const auto& [limit, loops] : outside)
    EXPECT_EQ(Unrolled(steps(limit, R"(["RE", 2, [2, 0, 1]],)")), loops) << limit;
  // The lanes of a vector are one store; a parallel loop stays.
  EXPECT_EQ(Unrolled(steps(8, R"(["RE", 2, [0, 2, 1]], ["AN", 2, 2, 2], ["AN", 2, 0, 3],)")), 1);
  EXPECT_EQ(Unrolled(steps(512, R"(["RE", 2, [0, 2, 1]], ["AN", 2, 2, 2], ["AN", 2, 0, 3],)")), 1);
}

TEST(AnsorReplayTest, ALimitOf0EndsAnOuterOrAnEarlierOne) {
  const auto limit = [](int loop, int steps) {
    return absl::StrCat(R"(["PR", 2, )", loop, R"(, "auto_unroll_max_step$)", steps, "\"]");
  };
  const auto unrolled = [](const std::vector<std::string>& steps) {
    return Unrolled(absl::StrCat("[", absl::StrJoin(steps, ", "), "]"));
  };
  EXPECT_EQ(unrolled({limit(0, 576)}), 3);
  EXPECT_EQ(unrolled({limit(0, 576), limit(2, 0)}), 0) << "a loop remains in each of the outer two";
  EXPECT_EQ(unrolled({limit(0, 0), limit(1, 576)}), 2);
  EXPECT_EQ(unrolled({limit(0, 576), limit(0, 0)}), 0);
  EXPECT_EQ(unrolled({limit(0, 0), limit(0, 576)}), 3);
  const std::string lanes = R"(["AN", 2, 0, 4])";
  EXPECT_THAT(Product(absl::StrCat("[", lanes, ", ", limit(1, 8), "]")), HasSubstr("step PR: "));
  EXPECT_THAT(Product(absl::StrCat("[", lanes, ", ", limit(1, 0), "]")), HasSubstr("bind("));
}

TEST(AnsorReplayTest, StepsThatCannotBeAppliedAreRefused) {
  struct Case {
    const char *steps, *message;
  };
  const Case malformed[] = {
      {R"([["SP", 9, 0, 8, [2], 1]])", "names a stage that does not exist"},
      {R"([["CA", 2, 7, 0]])", "names a stage that does not exist"},
      {R"([["CHR", 0, "local", [5]]])", "names a stage that does not exist"},
      {R"([["SP", 2, 3, 8, [2], 1]])", "names a loop beyond the 3 of its stage"},
      {R"([["AN", 2, 2147483647, 1]])", "names a loop beyond the 3"},
      {R"([["FU", 2, [1, 2, 3]]])", "names a loop beyond the 3"},
      {R"([["FU", 2, [0, 2]]])", "fuses loops that are not neighbours"},
      {R"([["FU", 2, []]])", "fuses nothing"},
      {R"([["RE", 2, [0, 1]]])", "is no order of the 3 loops"},
      {R"([["RE", 2, [0, 1, 1]]])", "is no order of the 3 loops"},
      {R"([["SP", 2, 0, 8, [3], 1]])", "has factors that do not divide the loop"},
      {R"([["SP", 2, 0, 8, [16], 1]])", "has factors that do not divide the loop"},
      {R"([["SP", 2, 0, 8, [2147483647, 2147483647, 2147483647], 1]])", "do not divide"},
      {R"([["SP", 2, 0, 8, [2, 0], 1]])", "has a factor below 1"},
      {R"([["FSP", 2, 0, 0, 1]])", "follows no earlier split"},
      {R"([["SP", 2, 0, 8, [2], 1], ["FSP", 2, 2, 0, 3]])", "takes more factors"},
      {R"([["SP", 2, 0, 8, [2], 1], ["FSP", 2, 2, 0, 0]])", "takes more factors"},
      {R"([["SP", 2, 0, 8, [2], 1], ["FFSP", 2, 2, [0], 1, 1]])", "does not have this factor"},
      {R"([["FFSP", 2, 0, [0], 0, 1]])", "follows no earlier split"},
  };
  for (const auto& [steps, message] : malformed)
    EXPECT_THAT(Product(steps), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(message))) << steps;
  const Case inexact[] = {
      {R"([["RF", 2, 2, 0]])", "step RF: "},
      {R"([["SP", 2, 0, 16, [2], 1]])", "step SP: the loop has another extent"},
      {R"([["CA", 0, 2, 1]])", "step CA: Hone has no block"},
      {R"([["CA", 2, 2, 1]])", "step CA: two stages are moved to each other"},
      {R"([["CI", 2]])", "step CI: "},
      {R"([["CI", 0]])", "step CI: the stage is an input"},
      {R"([["AN", 2, 0, 11]])", "step AN: an instruction of TVM"},
      {R"([["AN", 2, 2, 3]])", "step AN: "},
      {R"([["AN", 2, 0, 2]])", "step AN: "},
      {R"([["AN", 2, 0, 1], ["FU", 2, [0, 1]]])", "step AN: the loop was changed later"},
      {R"([["PR", 2, 0, "unroll_explicit$1"]])", "step PR: another pragma"},
      {R"([["PR", 2, 0, "auto_unroll_max_step$x"]])", "step PR: another pragma"},
      {R"([["PR", 2, 0, "auto_unroll_max_step$2000000000"]])", "step PR: another pragma"},
      {R"([["SA", 2, 0, 8, 4]])", "step SA: "},
      {R"([["CHR", 0, "texture", [2]]])", "step CHR: "},
      {R"([["CHR", 0, "local", []]])", "step CHR: "},
      {R"([["SP", 2, 0, 8, [2], 1], ["CHW", 2, "local"]])", "step CHW: "},
  };
  for (const auto& [steps, message] : inexact)
    EXPECT_THAT(Product(steps), AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr(message)))
        << steps;
  std::string many = R"(["CR", 2])";
  for (int i = 0; i < 10; ++i) many = absl::StrCat(many, ", ", many);
  EXPECT_THAT(Product(absl::StrCat("[", many, "]")), HasSubstr("step list: too long"));
}

// The padding of this task is in Hone's convolution, and its copy would be of the padded tensor.
TEST(AnsorReplayTest, PaddingMayOnlyBeInlined) {
  const std::string key = R"(["conv2d_layer", 1, 4, 4, 4, 4, 3, 3, [1, 1], [1, 1]])";
  EXPECT_THAT(Replayed(key, R"([["CI", 5], ["CI", 1]])"), IsOk());
  EXPECT_THAT(Replayed(key, R"([["CI", 5]])"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not inlined")));
  for (const char* steps :
       {R"([["CA", 1, 3, 0]])", R"([["CHR", 1, "local", [3]]])", R"([["FU", 1, [0, 1]]])"}) {
    EXPECT_THAT(Replayed(key, steps), StatusIs(absl::StatusCode::kFailedPrecondition)) << steps;
  }
}

// On GPUs, Ansor moves copies in shared memory into the loop of a thread, which fetches a part.
TEST(AnsorReplayTest, CopiesThatThreadsFetchTogetherAreNotReplayed) {
  const std::string steps =
      R"([["SP", 2, 0, 8, [4], 1], ["CHR", 0, "shared", [2]], ["CA", 1, 3, 1],
          ["AN", 3, 0, 5], ["AN", 3, 1, 6], ["AN", 1, 0, 6]])";
  EXPECT_THAT(Product(steps), HasSubstr("step CHR: TVM's threads fetch a part"));
}

TEST(AnsorReplayTest, TheLayoutOfConstantsMustBeKnown) {
  const std::string matmul = R"(["matmul_auto_scheduler_test", 8, 8, 8])";
  EXPECT_THAT(Replayed(matmul, "[]", kLayoutOfLoops),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not known which")));
  EXPECT_THAT(Replayed(matmul, "[]", 1), StatusIs(absl::StatusCode::kFailedPrecondition));
  const std::string pool = R"(["69115f188984ae34ede37c3b8ca40b43", 1, 7, 7, 8, 1, 1, 1, 8])";
  HONE_ASSERT_OK_AND_ASSIGN(const std::string text, Replayed(pool, "[]", kLayoutOfLoops));
  EXPECT_THAT(text, Not(HasSubstr("cache_read"))) << "it has no constants";
}

}  // namespace
}  // namespace hone::cli

// Kernels whose arguments are slices of larger tensors: concatenation without a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/target/kernel_abi.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Y = 2·X + 1 in vectors, with threads.
constexpr char kMap[] = R"(workload map
input X: f32[6, 24]
output Y[i: 6, j: 24] = X[i, j] * 2.0 + 1.0
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
vectorize(l3)
parallel(l0)
)";

constexpr char kDense[] = R"(workload dense
input A: f32[20, 8]
input B: f32[8, 40] constant
C[i: 20, j: 40] = sum(k: 8) A[i, k] * B[k, j]
output D[i: 20, j: 40] = max(C[i, j], 0.0)
trace 1
b0 = block("C")
b1 = block("D")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 6, 2, 16, 4)
)";

target::Target Host() {
  target::Target target = target::DetectHost();
  target.cores = 2;
  return target;
}

std::unique_ptr<CompiledProgram> Compiled(const std::string& text,
                                          const lower::ArgumentStrides& strides) {
  const auto program = ReplayText(text);
  EXPECT_THAT(program, IsOk());
  auto compiled = CompiledProgram::Load(*program, Host(), strides);
  EXPECT_THAT(compiled, IsOk());
  return *std::move(compiled);
}

TEST(SliceTest, KernelsReadAndWriteSlices) {
  for (const char* const text : {kMap, kDense}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(text));
    std::vector<ir::Values> inputs;
    for (const ir::BufferId id : program.workload().Inputs()) {
      ir::Values& values =
          inputs.emplace_back(ir::ElementsOf(program.workload().tensors[id].shape));
      for (size_t e = 0; e < values.size(); ++e) values[e] = static_cast<double>(e * 7 % 11) - 5;
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), inputs));
    const size_t arguments = inputs.size() + 1;
    // One slice at a time, then all arguments.
    for (size_t sliced = 0; sliced <= arguments; ++sliced) {
      lower::ArgumentStrides strides(arguments);
      for (size_t a = 0; a < arguments; ++a) {
        if (a == sliced || sliced == arguments) strides[a] = {67, 1};
      }
      HONE_ASSERT_OK_AND_ASSIGN(const auto actual, Compiled(text, strides)->Run(inputs));
      EXPECT_EQ(actual, expected) << "argument " << sliced;
    }
  }
}

TEST(SliceTest, TheKernelTellsItsStrides) {
  const auto kernel = Compiled(kMap, {{}, {67, 1}});
  const auto strides =
      reinterpret_cast<target::StridesFunction>(kernel->Symbol(target::kStridesSymbol));
  ASSERT_NE(strides, nullptr);
  EXPECT_EQ(strides(0), nullptr);
  EXPECT_EQ(strides(2), nullptr);
  EXPECT_EQ(strides(-1), nullptr);
  ASSERT_NE(strides(1), nullptr);
  EXPECT_THAT(std::vector<int64_t>(strides(1), strides(1) + 2), ElementsAre(67, 1));
  EXPECT_EQ(Compiled(kMap, {})->Symbol(target::kStridesSymbol), nullptr);
}

// Calls the kernel with slices of one tensor that begin at these elements. Returns its status.
int32_t RunOn(CompiledProgram& kernel, std::vector<float>& tensor, int64_t x, int64_t y) {
  void* const buffers[] = {tensor.data() + x, tensor.data() + y};
  return reinterpret_cast<target::RunFunction>(kernel.Symbol(target::kRunSymbol))(buffers, nullptr,
                                                                                  nullptr, nullptr);
}

// The columns 0 to 23 of a row of 60 are read, and 24 to 47 written.
TEST(SliceTest, SlicesOfOneTensorAlternate) {
  const auto kernel = Compiled(kMap, {{60, 1}, {60, 1}});
  std::vector<float> tensor(600);
  for (size_t e = 0; e < tensor.size(); ++e) tensor[e] = static_cast<float>(e);
  const std::vector<float> before = tensor;
  ASSERT_EQ(RunOn(*kernel, tensor, 0, 24), target::kKernelOk);
  for (size_t e = 0; e < tensor.size(); ++e) {
    const bool written = e < 360 && e % 60 >= 24 && e % 60 < 48;
    EXPECT_EQ(tensor[e], written ? before[e - 24] * 2 + 1 : before[e]) << e;
  }
}

TEST(SliceTest, SlicesThatShareElementsAreRefused) {
  const auto kernel = Compiled(kMap, {{60, 1}, {60, 1}});
  std::vector<float> tensor(1200);
  const struct {
    int64_t x, y;
    int32_t status;
  } calls[] = {
      {0, 24, target::kKernelOk},
      {24, 0, target::kKernelOk},
      {0, 36, target::kKernelOk},
      {60, 36, target::kKernelOk},  // y's rows end where x's next rows begin
      {0, 84, target::kKernelOk},   // y is a row lower
      {84, 0, target::kKernelOk},
      {0, 324, target::kKernelOk},  // y begins behind x
      {0, 0, target::kKernelOverlap},
      {0, 23, target::kKernelOverlap},
      {23, 0, target::kKernelOverlap},
      {0, 37, target::kKernelOverlap},  // y's rows end in x's next rows
      {37, 0, target::kKernelOverlap},
      {0, 60, target::kKernelOverlap},  // the same columns, a row lower
      {0, 323, target::kKernelOverlap},
      {323, 0, target::kKernelOverlap},
  };
  for (const auto& call : calls)
    EXPECT_EQ(RunOn(*kernel, tensor, call.x, call.y), call.status) << call.x << " " << call.y;
  // Rows of other distances cannot alternate.
  const auto other = Compiled(kMap, {{60, 1}, {61, 1}});
  EXPECT_EQ(RunOn(*other, tensor, 0, 24), target::kKernelOverlap);
  EXPECT_EQ(RunOn(*other, tensor, 0, 324), target::kKernelOk);
}

// The first element at which a dense buffer may begin.
int64_t AlignedElement(const std::vector<float>& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  return static_cast<int64_t>((address + 63) / 64 * 64 - address) / int64_t{sizeof(float)};
}

// A row of 24 elements is written between, before and behind rows of 24 that are 60 apart, and the
// other way round.
TEST(SliceTest, OneRowMayLieBetweenTheRowsOfASlice) {
  constexpr absl::string_view kSum = "input X: f32[6, 24]\noutput Y[j: 24] = sum(i: 6) X[i, j]\n";
  constexpr absl::string_view kSpread =
      "input X: f32[24]\noutput Y[i: 6, j: 24] = X[j] + f32(index(i))\n";
  std::vector<float> tensor(1200);
  const int64_t begin = AlignedElement(tensor);
  const struct {
    int64_t rows, row;
    int32_t status;
  } calls[] = {
      {0, 24, target::kKernelOk},       {0, 36, target::kKernelOk},
      {0, 32, target::kKernelOk},       {0, 96, target::kKernelOk},
      {0, 48, target::kKernelOverlap},  {0, 64, target::kKernelOverlap},
      {0, 156, target::kKernelOk},      {60, 36, target::kKernelOk},
      {0, 324, target::kKernelOk},      {0, 0, target::kKernelOverlap},
      {0, 23, target::kKernelOverlap},  {0, 37, target::kKernelOverlap},
      {0, 120, target::kKernelOverlap}, {60, 37, target::kKernelOverlap},
  };
  // The row as a slice, and dense.
  for (const lower::ArgumentStrides& row : {lower::ArgumentStrides{{1}}, {{}}}) {
    const auto sum = Compiled(absl::StrCat("workload w\n", kSum, "trace 1\n"), {{60, 1}, row[0]});
    const auto spread =
        Compiled(absl::StrCat("workload w\n", kSpread, "trace 1\n"), {row[0], {60, 1}});
    for (const auto& call : calls) {
      if (row[0].empty() && call.row % 16 != 0) continue;
      const int64_t rows_at = begin + call.rows, row_at = begin + call.row;
      EXPECT_EQ(RunOn(*sum, tensor, rows_at, row_at), call.status) << call.rows << " " << call.row;
      EXPECT_EQ(RunOn(*spread, tensor, row_at, rows_at), call.status)
          << call.rows << " " << call.row;
    }
  }
  // A row that is longer than the gap between two others cannot lie there.
  const auto wide = Compiled(
      "workload w\ninput X: f32[6, 24]\noutput Y[j: 40] = sum(i: 6) X[i, j / 2]\ntrace 1\n",
      {{60, 1}, {1}});
  EXPECT_EQ(RunOn(*wide, tensor, 0, 24), target::kKernelOverlap);
  EXPECT_EQ(RunOn(*wide, tensor, 0, 324), target::kKernelOk);
}

TEST(SliceTest, OnlySlicesMayBeginAtAnyElement) {
  std::vector<float> tensor(1200);
  const int64_t begin = AlignedElement(tensor);
  const auto kernel = Compiled(kMap, {{}, {60, 1}});
  EXPECT_EQ(RunOn(*kernel, tensor, begin, begin + 401), target::kKernelOk);
  EXPECT_EQ(RunOn(*kernel, tensor, begin + 401, begin), target::kKernelMisalignedBuffer);
  void* const odd[] = {&tensor[begin], reinterpret_cast<char*>(&tensor[begin + 401]) + 2};
  EXPECT_EQ(reinterpret_cast<target::RunFunction>(kernel->Symbol(target::kRunSymbol))(
                odd, nullptr, nullptr, nullptr),
            target::kKernelMisalignedBuffer);
}

// Non-temporal stores need whole aligned vectors.
TEST(SliceTest, StoresToSlicesStayInTheCaches) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(R"(workload stream
input X: f32[8, 256]
output Y[i: 8, j: 256] = X[i, j] * 2.0
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
vectorize(l3)
annotate(b0, "nontemporal", 1)
)"));
  const target::Target target = Preset("x86-avx512");
  const auto assembly = [&](const lower::ArgumentStrides& strides) {
    const auto lowered = lower::Lower(program, target, strides);
    EXPECT_THAT(lowered, IsOk());
    const auto object = Compile(*lowered, target, {.keep_assembly = true});
    EXPECT_THAT(object, IsOk());
    return object->assembly;
  };
  EXPECT_THAT(assembly({{512, 1}, {}}), HasSubstr("vmovntps"));
  EXPECT_THAT(assembly({{}, {512, 1}}), Not(HasSubstr("vmovntps")));
}

TEST(SliceTest, WrongStridesAreRefused) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(kMap));
  const auto refusal = [&](const lower::ArgumentStrides& strides) {
    return std::string(lower::Lower(program, Host(), strides).status().message());
  };
  EXPECT_THAT(refusal({{}, {20, 1}}), HasSubstr("strides [20, 1] of Y[6, 24]"));
  EXPECT_THAT(refusal({{67, 1}}), HasSubstr("the kernel has 2"));
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto tuple,
      ReplayText("workload w\ninput X: f32[5, 19]\noutput (C, I)[i: 5] = argmax(k: 19) (X[i, k], "
                 "i32(index(k)))\ntrace 1\n"));
  EXPECT_THAT(lower::Lower(tuple, Host(), {{}, {1}, {}}).status().message(),
              HasSubstr("C and I are outputs of one stage and must have the same strides"));
  EXPECT_THAT(lower::Lower(tuple, Host(), {{}, {1}, {1}}), IsOk());
}

}  // namespace
}  // namespace hone::codegen

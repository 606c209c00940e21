// The emulation of CUDA on the CPU runs right kernels in any order of threads, and notices faults
// that are planted in their text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/status.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/emulated_program.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// Sums of 32 elements, which the threads of a warp exchange.
constexpr char kShuffles[] = R"(
extern "C" __global__ void __launch_bounds__(64) sums(
    const float* __restrict__ A,
    float* __restrict__ C,
    const unsigned char* __restrict__ packed,
    unsigned char* __restrict__ workspace) {
  float x = A[blockIdx.x * 64 + threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    x += hone_shuffle_xor(x, lanes);
  }
  if (threadIdx.x % 32 == 0) C[blockIdx.x * 2 + threadIdx.x / 32] = x;
}
)";

struct Example {
  Code code;
  std::shared_ptr<const ir::Workload> workload;
  std::vector<ir::Scalars> inputs, outputs;
};

absl::StatusOr<Example> MakeExample(const std::string& name) {
  std::string text =
      "workload sums\ninput A: f32[4, 32]\noutput C[i: 4] = sum(k: 32) A[i, k]\ntrace 1\n";
  if (name != "shuffles") {
    std::stringstream content;
    content << std::ifstream(absl::StrCat("tests/worker/compile/testdata/", name, ".txt")).rdbuf();
    text = content.str();
    text = text.substr(0, text.find("\ncode\n") + 1);
  }
  const auto program = ReplayText(text);
  if (!program.ok()) return program.status();
  Example example{.workload = program->shared_workload()};
  const auto lowered = lower::Lower(*program, CudaTarget());
  if (!lowered.ok()) return lowered.status();
  absl::StatusOr<Code> code = Generate(*lowered, CudaTarget());
  if (!code.ok()) return code.status();
  example.code = *std::move(code);
  if (name == "shuffles") {
    example.code.bytes = kShuffles;
    example.code.module->launches = {{.kernel = "sums", .grid = {2, 1, 1}, .block = {64, 1, 1}}};
  }
  int next = 1;
  for (const ir::BufferId id : example.workload->Inputs()) {
    ir::Scalars& input = example.inputs.emplace_back();
    const bool is_unsigned = example.workload->tensors[id].dtype == ir::DType::kU8;
    for (int64_t e = 0; e < ir::ElementsOf(example.workload->tensors[id].shape); ++e) {
      input.push_back(static_cast<double>(is_unsigned ? next % 7 * 40 : next % 7 - 3));
      next = next * 31 % 1009;
    }
  }
  absl::StatusOr<std::vector<ir::Scalars>> outputs =
      ir::Interpret(*example.workload, example.inputs);
  if (!outputs.ok()) return outputs.status();
  example.outputs = *std::move(outputs);
  return example;
}

// "" or what the emulation notices in one of the orders.
std::string Problem(const Example& example, EmulatedPrograms& programs, size_t number) {
  for (const auto order : {cuda::EmulatedOrder::kForward, cuda::EmulatedOrder::kBackward,
                           cuda::EmulatedOrder::kRandom}) {
    const auto outputs = programs.Run(number, *example.workload, example.inputs, order);
    if (!outputs.ok()) return std::string(outputs.status().message());
    for (size_t e = 0; e < example.outputs[0].size(); ++e) {
      const double want = example.outputs[0][e].real(), got = (*outputs)[0][e].real();
      if (!(std::abs(want - got) <= 1e-5 * std::abs(want))) {
        return absl::StrCat("wrong: element ", e, " is ", got, ", expected ", want);
      }
    }
  }
  return "";
}

// What is planted: the n-th occurrence of a text is replaced.
struct Fault {
  const char* example;
  int occurrence;
  const char *from, *to;
  const char* message;  // a part of it
};

constexpr char kBarrier[] = "__syncthreads();", kWait[] = "hone_wait_group<1>();";
constexpr Fault kFaults[] = {
    {"cuda_matmul", 1, kBarrier, "", "wrong"},
    {"cuda_matmul", 2, kBarrier, "", "wrong"},
    {"cuda_matmul", 1, "k_0 * 16 + (tx", "k_0 * 8 + (tx", "wrong"},
    {"cuda_matmul", 1, "C[(by", "C[32 + (by", ""},
    {"cuda_rows", 1, kBarrier, "", "wrong"},
    {"cuda_rows", 2, kBarrier, "", "wrong"},
    {"cuda_rows", 1, kBarrier, "if (tx < 32) __syncthreads();", "waits at the barrier in line"},
    {"cuda_rows", 2, kBarrier, "if (tx < 32) return; __syncthreads();",
     "has ended while others wait at the barrier"},
    {"cuda_pipeline", 1, kWait, "", "ends without having waited"},
    {"cuda_pipeline", 1, kWait, "hone_wait_group<2>();", ""},
    {"cuda_pipeline", 1, "hone_wait_group<1>();\n    __syncthreads();",
     "__syncthreads();\n    hone_wait_group<1>();", "wrong"},
    {"cuda_pipeline", 1, "hone_wait_group<1>();\n    __syncthreads();", kWait, "wrong"},
    {"cuda_pipeline", 1, "hone_commit_group();", "", ""},
    {"cuda_pipeline", 3, "hone_commit_group();", "", ""},
    {"cuda_pipeline", 1, "(k_0 + 2) % 3", "(k_0 + 1) % 3", "wrong"},
    {"cuda_pipeline", 1, "hone_copy_async_16(&A_shared[", "hone_copy_async_16(&A_shared[1 + ",
     "not aligned"},
    {"cuda_dp4a", 1, kBarrier, "", "wrong"},
    {"cuda_dp4a", 2, kBarrier, "", "wrong"},
    {"cuda_dp4a", 1, "(k_1 * 20 +", "(k_1 * 16 +", "wrong"},
    {"cuda_dp4a", 1, "* 2 + j_2) * 4]", "* 2 + j_2) * 4 + 1]", "wrong"},
    {"cuda_shuffle", 1, kBarrier, "", "wrong"},
    {"cuda_shuffle", 2, kBarrier, "", "wrong"},
    {"cuda_shuffle", 1, ", 8)", ", 4)", "wrong"},
    {"cuda_shuffle", 1, ", 16)", ", 32)", "which is not there or not in its mask"},
    {"cuda_shuffle", 1, "M_rf_other = hone", "if (tx < 40) M_rf_other = hone",
     "which does not take part"},
    {"shuffles", 1, "hone_shuffle_xor(x, lanes)", "hone_shuffle_xor(x, lanes, 0xffff)",
     "not in its mask"},
    {"shuffles", 1, "hone_shuffle_xor(x, lanes)", "hone_shuffle_xor(x, 2 * lanes)",
     "which is not there or not in its mask"},
    {"shuffles", 1,
     "    x +=", "    if (threadIdx.x % 32 < lanes) x +=", "which does not take part"},
    {"shuffles", 1, "lanes > 0", "lanes > 1", "wrong"},
    {"shuffles", 1, "hone_shuffle_xor(x", "hone_shuffle_down(x + 1", "wrong"},
};

TEST(CudaEmulationTest, NoticesEachPlantedFault) {
  std::map<std::string, Example> examples;
  std::vector<Code> codes;
  for (const Fault& fault : kFaults) {
    if (!examples.contains(fault.example)) {
      HONE_ASSERT_OK_AND_ASSIGN(auto example, MakeExample(fault.example));
      examples.emplace(fault.example, std::move(example));
    }
    Code& code = codes.emplace_back(examples.at(fault.example).code);
    size_t at = code.bytes.find("extern \"C\" __global__");
    for (int n = 1; n <= fault.occurrence; ++n) {
      at = code.bytes.find(fault.from, n == 1 ? at : at + 1);
      ASSERT_NE(at, std::string::npos) << fault.example << ": " << fault.from << code.bytes;
    }
    code.bytes.replace(at, std::string(fault.from).size(), fault.to);
  }
  const size_t faults = codes.size();
  for (const auto& [name, example] : examples) codes.push_back(example.code);
  HONE_ASSERT_OK_AND_ASSIGN(const auto programs, EmulatedPrograms::Build(std::move(codes)));
  size_t number = faults;
  for (const auto& [name, example] : examples) {
    EXPECT_EQ(Problem(example, *programs, number), "") << name;
    ++number;
  }
  for (size_t f = 0; f < faults; ++f) {
    const std::string problem = Problem(examples.at(kFaults[f].example), *programs, f);
    EXPECT_NE(problem, "") << kFaults[f].example << ": " << kFaults[f].from << " → "
                           << kFaults[f].to;
    EXPECT_THAT(problem, testing::HasSubstr(kFaults[f].message))
        << kFaults[f].example << ": " << kFaults[f].from << " → " << kFaults[f].to;
  }
}

TEST(CudaEmulationTest, ReportsTextsThatDoNotCompile) {
  Code code{.bytes = "extern \"C\" __global__ void k() { undeclared(); }\n"};
  EXPECT_THAT(EmulatedPrograms::Build({code}),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("undeclared")));
}

}  // namespace
}  // namespace hone::codegen

// The printed C computes what the interpreter computes, for every operation, dtype and conversion,
// also at the ends of each range. The host's C compiler runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "common/target/module_call.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"
#include "tests/status.h"
#include "tests/worker/compile/c_backend.h"
#include "tests/worker/compile/clang_check.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/emulated_program.h"
#include "tests/worker/compile/every_operation.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Scalars;

absl::StatusOr<std::vector<Scalars>> RunInC(const ir::Program& program,
                                            const std::vector<Scalars>& inputs) {
  const target::Target host = target::DetectHost();
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, host));
  HONE_ASSIGN_OR_RETURN(const Code code, CBackend()->Generate(lowered, host, {}));
  HONE_ASSIGN_OR_RETURN(const std::string shared, CompileC(code));
  HONE_ASSIGN_OR_RETURN(const auto compiled,
                        CompiledProgram::Load(program.shared_workload(), shared));
  return compiled->Run(absl::MakeConstSpan(inputs));
}

// Small numbers, both ends of the range, and numbers that other types round, wrap or saturate.
Scalars Interesting(DType dtype) {
  Scalars values;
  for (const double v : {0.0,
                         0.25,
                         0.5,
                         1.0,
                         1.5,
                         2.5,
                         3.0,
                         7.0,
                         100.0,
                         127.0,
                         127.5,
                         128.0,
                         200.0,
                         255.0,
                         256.0,
                         300.7,
                         448.0,
                         464.0,
                         465.0,
                         2049.0,
                         57344.0,
                         61440.0,
                         65504.0,
                         65519.0,
                         65520.0,
                         65536.0,
                         16777217.0,
                         0x1p31 - 128,
                         0x1p31 - 1,
                         0x1p31,
                         0x1p31 + 256,
                         0x1p32,
                         0x1.8p33,
                         0x1.0203p40,
                         0x1.01p53,
                         0x1.fffffffffffffp62,
                         0x1p63,
                         0x1.8p63,
                         0x1p64,
                         0x1.3456789abcdefp70,
                         3.4e38,
                         0x1.ffp127,
                         1e300,
                         0x1p-6,
                         0x1p-9,
                         0x1.8p-10,
                         0x1p-10,
                         0x1p-14,
                         0x1.ffep-15,
                         0x1p-16,
                         0x1p-17,
                         0x1p-24,
                         0x1p-25,
                         0x1.8p-25,
                         0x1.003p0,
                         0x1.01p0,
                         0x1.0100000000001p0,
                         0x1p-126,
                         0x1p-133,
                         0x1.8p-134,
                         0x1p-149,
                         0x1.8p-150}) {
    for (const double sign : {1.0, -1.0}) values.push_back(ir::CastTo(dtype, sign * v));
  }
  if (dtype == DType::kI64) {
    for (const int64_t v :
         {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
          (int64_t{1} << 40) + 1, (int64_t{0x101} << 40) + 1}) {
      values.push_back(v);
    }
  }
  if (ir::IsFloat(dtype)) {
    for (const double v :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), -0.0}) {
      values.push_back(ir::CastTo(dtype, v));
    }
  }
  return values;
}

// Every pair of values.
std::vector<Scalars> Pairs(const Scalars& values) {
  std::vector<Scalars> inputs(2);
  for (const ir::Scalar a : values) {
    for (const ir::Scalar b : values) {
      inputs[0].push_back(a);
      inputs[1].push_back(b);
    }
  }
  return inputs;
}

bool Agree(ir::Scalar want, ir::Scalar got, double tolerance) {
  if (want == got) return true;
  // Where f32 overflows, f8e5m2 does not saturate.
  if (tolerance > 0 && want == ir::Scalar(57344.0) && std::isinf(got.real())) return true;
  if (std::isnan(want.real()) || std::isnan(got.real())) {
    return std::isnan(want.real()) && std::isnan(got.real());
  }
  return std::abs(want.real() - got.real()) <= tolerance * std::abs(want.real());
}

// Reports the first result of an output that differs from the interpreter's.
void ExpectResults(const OperationWorkload& operations, DType dtype,
                   const std::vector<Scalars>& inputs, const std::vector<Scalars>& expected,
                   const std::vector<Scalars>& actual) {
  for (size_t t = 0; t < expected.size(); ++t) {
    const OperationWorkload::Output& output = operations.outputs[t];
    // Functions of the C library, and results in f32, are rounded.
    const double tolerance = !output.rounds                      ? 0
                             : dtype == DType::kF64              ? 0x1p-49
                             : ir::AccumulatorOf(dtype) == dtype ? 0x1p-20
                                                                 : 0x1p-2;
    for (size_t e = 0; e < inputs[0].size(); ++e) {
      ASSERT_TRUE(Agree(expected[t][e], actual[t][e], tolerance))
          << output.value << " is " << actual[t][e] << ", expected " << expected[t][e] << ", for "
          << inputs[0][e] << " and " << inputs[1][e];
    }
  }
}

class CSemanticsTest : public testing::TestWithParam<DType> {};

TEST_P(CSemanticsTest, EveryOperation) {
  const std::vector<Scalars> inputs = Pairs(Interesting(GetParam()));
  const auto n = static_cast<int64_t>(inputs[0].size());
  const OperationWorkload operations = EveryOperation(GetParam(), n);
  EXPECT_GE(operations.outputs.size(), GetParam() == DType::kBool ? 20 : 40);
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            ReplayText(absl::StrCat(operations.text, "trace 1\n")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), inputs));
  HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunInC(program, inputs));
  ExpectResults(operations, GetParam(), inputs, expected, actual);
}

// As CUDA C++, one element at a time and as vectors, compiled for this CPU.
TEST_P(CSemanticsTest, EveryOperationInCuda) {
  std::vector<Scalars> inputs = Pairs(Interesting(GetParam()));
  while (inputs[0].size() % 4 != 0) {
    for (Scalars& input : inputs) input.push_back(input[1]);
  }
  const auto n = static_cast<int64_t>(inputs[0].size());
  const OperationWorkload operations = EveryOperation(GetParam(), n);
  std::vector<std::string> blocks;
  for (const OperationWorkload::Output& output : operations.outputs) blocks.push_back(output.name);
  std::vector<Code> codes;
  std::shared_ptr<const ir::Workload> workload;
  for (const int lanes : {1, 4}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                              ReplayText(WithVectors(operations.text, blocks, lanes)));
    workload = program.shared_workload();
    HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, CudaTarget()));
    HONE_ASSERT_OK_AND_ASSIGN(const auto code, Generate(lowered, CudaTarget()));
    codes.push_back(code);
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*workload, inputs));
  HONE_ASSERT_OK_AND_ASSIGN(const auto programs, EmulatedPrograms::Build(std::move(codes)));
  for (const size_t number : {0, 1}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, programs->Run(number, *workload, inputs));
    ExpectResults(operations, GetParam(), inputs, expected, actual);
  }
}

// The limits of a whole number say where signs and conversions may be left out. A sum in a short
// type wraps before it is converted to a longer one.
TEST(COverflowTest, SumsWrapBeforeAConversion) {
  for (const char* const value :
       {"abs(i32(A[i] + 200) - 200)", "max(i32(A[i] + 200), 200) - i32(A[i] * 3)",
        "i32(A[i] - 7) / 3"}) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto program,
        ReplayText(absl::StrCat("workload wraps\ninput A: u8[256]\noutput B[i: 256] = ", value,
                                "\ntrace 1\n")));
    Scalars bytes;
    for (int64_t v = 0; v < 256; ++v) bytes.push_back(v);
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), {bytes}));
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunInC(program, {bytes}));
    for (int v = 0; v < 256; ++v) {
      ASSERT_EQ(actual[0][v], expected[0][v]) << value << " of " << v;
    }
  }
}

// The OpenCL text of the same operations, one element at a time and as vectors.
TEST_P(CSemanticsTest, ClangAcceptsEveryOperation) {
  if (!HasClang()) GTEST_SKIP() << "no clang";
  target::Target target = Preset("generic/opencl");
  target.features = {"fp64"};
  for (const int lanes : {1, 4}) {
    const OperationWorkload operations = EveryOperation(GetParam(), 64);
    std::vector<std::string> blocks;
    for (const OperationWorkload::Output& output : operations.outputs) {
      blocks.push_back(output.name);
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                              ReplayText(WithVectors(operations.text, blocks, lanes)));
    HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, target));
    HONE_ASSERT_OK_AND_ASSIGN(const auto code, Generate(lowered, target));
    EXPECT_EQ(ClangErrors(code.bytes), "");
  }
}

// As vectors, which the host's C does not have, on an OpenCL device.
TEST(OpenClSemanticsTest, EveryOperationOnVectors) {
  const absl::StatusOr<target::Target> target = opencl::TargetOf("opencl");
  if (!target.ok()) GTEST_SKIP() << target.status().message();
  HONE_ASSERT_OK_AND_ASSIGN(const auto facts, opencl::FindDevice(**opencl::LoadedApi(), "opencl"));
  if (facts.platform_name == "Portable Computing Language" &&
      absl::StartsWith(facts.driver_version, "6.0")) {
    GTEST_SKIP() << "PoCL 6.0 ends the process: its LLVM checks that instructions are combined in "
                    "one iteration";
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto gpu, target::OpenGpuFor(*target));
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    Scalars values;
    for (const double v : {0.0, 0.25, 1.0, -1.5, 3.0, -7.0, 200.0, 65504.0, HUGE_VAL, -HUGE_VAL,
                           std::numeric_limits<double>::quiet_NaN(), 0x1.004p0}) {
      values.push_back(ir::CastTo(dtype, v));
    }
    const std::vector<Scalars> inputs = Pairs(values);
    const auto n = static_cast<int64_t>(inputs[0].size());
    const OperationWorkload operations = EveryOperation(dtype, n);
    std::vector<std::string> blocks;
    for (const OperationWorkload::Output& output : operations.outputs) {
      blocks.push_back(output.name);
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                              ReplayText(WithVectors(operations.text, blocks, 4)));
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), inputs));
    HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, *target));
    HONE_ASSERT_OK_AND_ASSIGN(const auto code, Generate(lowered, *target));
    target::GpuModule module = *code.module;
    module.code = code.bytes;
    std::vector<std::string> bytes(2);
    for (size_t i = 0; i < 2; ++i) {
      bytes[i].resize(n * ir::DTypeBytes(dtype));
      for (int64_t e = 0; e < n; ++e) {
        ir::WriteElement(dtype, bytes[i].data(), e, inputs[i][e]);
      }
    }
    std::vector<int64_t> sizes;
    for (const ir::BufferId id : program.workload().Outputs()) {
      sizes.push_back(n * ir::DTypeBytes(program.workload().tensors[id].dtype));
    }
    HONE_ASSERT_OK_AND_ASSIGN(auto results,
                              target::CallModule(*gpu, module, {bytes[0], bytes[1]}, sizes));
    std::vector<Scalars> actual;
    for (size_t o = 0; o < sizes.size(); ++o) {
      const ir::BufferId id = program.workload().Outputs()[o];
      Scalars& output = actual.emplace_back();
      for (int64_t e = 0; e < n; ++e) {
        output.push_back(
            ir::ReadElement(program.workload().tensors[id].dtype, results[o].data(), e));
      }
    }
    ExpectResults(operations, dtype, inputs, expected, actual);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, CSemanticsTest, testing::ValuesIn(kEveryDType),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

}  // namespace
}  // namespace hone::codegen

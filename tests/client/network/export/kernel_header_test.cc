#include "client/network/export/kernel_header.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/network/export/c_text.h"
#include "common/ir/region.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ir::Workload Build(const std::string& op, const std::vector<std::string>& words) {
  auto workload = op::BuildWorkload(op, words);
  EXPECT_THAT(workload, IsOk());
  return *std::move(workload);
}

KernelFacts Facts(const std::string& name) {
  return {.name = name,
          .target_key = "x86_64-test-2c-00000000",
          .cpu_features = "avx2 fma",
          .latency_ns = 12345,
          .gflops = 6.5};
}

// The lines of a header that have a word.
std::string LinesWith(const std::string& word, const std::string& header) {
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(header, '\n')) {
    if (absl::StrContains(line, word)) absl::StrAppend(&lines, line, "\n");
  }
  return lines;
}

TEST(KernelHeaderTest, DescribesTheCallingInterface) {
  const std::string header =
      KernelHeader(Build("dense_relu", {"m=4", "n=6", "k=8"}), Facts("dense_relu"));
  GoldenOfTest().Add(WithoutVersion(header));
}

TEST(KernelHeaderTest, SaysThatLinuxMayRefuseTiles) {
  const ir::Workload workload = Build("dense_relu", {"m=4", "n=6", "k=8"});
  KernelFacts facts = Facts("dense_relu");
  EXPECT_THAT(KernelHeader(workload, facts), Not(HasSubstr("AMX")));
  facts.cpu_features = "amx-int8 avx2";
  EXPECT_THAT(KernelHeader(workload, facts),
              HasSubstr("If Linux refuses, it returns HONE_KERNEL_UNSUPPORTED_CPU."));
}

TEST(KernelHeaderTest, TypesWithoutACTypeAreTheirBits) {
  GoldenOfTest golden;
  const std::string header =
      KernelHeader(Build("matmul", {"m=4", "n=6", "k=8", "dtype=f8e4m3", "acc=f32"}), Facts("m"));
  golden.Add(LinesWith("_TYPE", header));
  golden.Add(
      LinesWith("_TYPE", KernelHeader(Build("relu", {"m=4", "n=6", "dtype=f8e5m2"}), Facts("m"))));
}

// The header compiles as C and as C++ with all warnings.
TEST(KernelHeaderTest, CompilesAsCAndCxx) {
  const TemporaryFolder root;
  std::ofstream(root / "conv.h") << KernelHeader(
      Build("conv2d", {"n=1", "h=14", "w=14", "ci=8", "co=16", "k=3", "p=1"}), Facts("conv"));
  std::ofstream(root / "use.c")
      << "#include \"conv.h\"\n#include \"conv.h\"\n"
         "static const int64_t shape[CONV_Y_RANK] = CONV_Y_SHAPE;\n"
         "static const int64_t strides[CONV_X_RANK] = CONV_X_STRIDES;\n"
         "int64_t use(void) { CONV_Y_TYPE one = 1; return shape[0] + strides[0] + (int64_t)one +\n"
         "  conv_packed_bytes() + CONV_W_BYTES + CONV_X_ELEMENTS + HONE_KERNEL_OK; }\n";
  const std::string flags =
      " -Wall -Wextra -Wpedantic -Werror -c -o /dev/null " + root / "use.c 2>&1";
  EXPECT_EQ(std::system(("cc -std=c11" + flags).c_str()), 0);
  EXPECT_EQ(std::system(("c++ -x c++ -std=c++11" + flags).c_str()), 0);
}

// For every type of inputs, also those that C and NumPy do not have.
TEST(KernelHeaderTest, ExamplesAndModulesCompile) {
  const TemporaryFolder root;
  for (const char* dtype : {"f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool", "f8e4m3",
                            "f8e5m2", "i4", "u4"}) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto workload,
        ir::ParseWorkload(absl::StrCat(
            "workload w\ninput A: ", dtype, "[4, 8]\ninput a: i64[4] < 3\ninput W: ", dtype,
            "[8] constant\noutput Y[i: 4] = sum(k: 8) f32(A[i, k]) * f32(W[k])\n",
            "output Z[i: 4] = a[i] + 1\n")));
    KernelFacts facts = Facts("typed");
    facts.reads = {true, true, false};
    facts.accepts_null = true;
    std::ofstream(root / "typed.h") << KernelHeader(workload, facts);
    std::ofstream(root / "typed_example.c") << KernelExample(workload, facts);
    std::ofstream(root / "typed_kernel.py") << KernelModule(workload, facts);
    EXPECT_EQ(std::system(("cc -std=c11 -Wall -Wextra -Werror -c -o /dev/null " +
                           root / "typed_example.c 2>&1")
                              .c_str()),
              0)
        << dtype;
    EXPECT_EQ(std::system(("python3 -W error -m py_compile " + root / "typed_kernel.py").c_str()),
              0)
        << dtype;
  }
}

// Names that Python or the parameters of the module have taken.
TEST(KernelHeaderTest, ModulesTakeTensorsOfAnyName) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ir::ParseWorkload("workload w\ninput self: f32[4, 8]\ninput threads: f32[8] constant\ninput "
                        "constants: f32[4] "
                        "constant\nlambda[i: 4] = sum(k: 8) self[i, k] * threads[k]\n"
                        "output def[i: 4] = lambda[i] + constants[i]\n"));
  const TemporaryFolder root;
  const std::string module = KernelModule(workload, Facts("named"));
  EXPECT_THAT(module,
              HasSubstr("kernel = Kernel({\"threads\": threads_, \"constants\": constants})\n"
                        "    def_ = kernel(self)\n"));
  std::ofstream(root / "named_kernel.py") << module;
  // NumPy need not be installed.
  std::ofstream(root / "use.py")
      << "import inspect, sys\n"
         "from unittest import mock\n"
         "sys.path.insert(0, sys.argv[1])\n"
         "sys.modules['numpy'] = mock.MagicMock()\n"
         "from named_kernel import Kernel\n"
         "given = inspect.signature(Kernel).bind({'threads': 1}, self=2, constants=3, threads=4)\n"
         "assert given.arguments['threads'] == 4\n"
         "assert given.arguments['constants'] == {'threads': 1}\n"
         "assert given.arguments['named'] == {'self': 2, 'constants': 3}\n";
  EXPECT_EQ(std::system(("python3 " + root / "use.py " + root.path()).c_str()), 0);
}

TEST(KernelHeaderTest, FunctionsAndMacrosBeginWithTheName) {
  const std::string header = KernelHeader(Build("matmul", {"m=4", "n=6", "k=8"}), Facts("conv"));
  GoldenOfTest().Add(LinesWith("conv_", header));
  EXPECT_THAT(header, Not(HasSubstr("hone_kernel_run")));
}

// Only what the prepack kernel packs is not read later.
TEST(KernelHeaderTest, SaysForEachConstantWhetherRunReadsIt) {
  GoldenOfTest golden;
  HONE_ASSERT_OK_AND_ASSIGN(
      auto workload,
      ir::ParseWorkload(
          "workload w\ninput X: f32[4, 8]\ninput W: f32[8, 6] constant\ninput G: f32[6] constant\n"
          "Y[i: 4, j: 6] = sum(k: 8) X[i, k] * W[k, j]\noutput Z[i: 4, j: 6] = Y[i, j] * G[j]\n"));
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto trace,
      schedule::ParseTraceFile(
          workload.ToText() +
          "trace 1\nb0 = block(\"Y\")\nb1 = cache_read(b0, \"W\", \"global\")\n"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            schedule::Replay(std::make_shared<const ir::Workload>(workload),
                                             trace.parsed.trace, trace.parsed.decisions));
  KernelFacts facts = Facts("w");
  facts.reads = ir::InputsThatRunReads(program);
  EXPECT_EQ(facts.reads, (std::vector<bool>{true, false, true}));
  golden.Add(LinesWith("constant:", KernelHeader(workload, facts)));
  facts.accepts_null = true;
  golden.Add("null", LinesWith("constant:", KernelHeader(workload, facts)));
}

TEST(KernelHeaderTest, TensorsThatDifferInCaseHaveDistinctMacros) {
  HONE_ASSERT_OK_AND_ASSIGN(
      auto workload,
      ir::ParseWorkload(
          "workload w\ninput a: f32[4]\ninput A: f32[6]\noutput B[i: 4] = a[i] + A[i]\n"));
  const std::string header = KernelHeader(workload, Facts("w"));
  GoldenOfTest().Add(LinesWith("_ELEMENTS", header));
}

TEST(KernelHeaderTest, PrintsSubMicrosecondLatency) {
  GoldenOfTest golden;
  KernelFacts facts = Facts("w");
  facts.latency_ns = 86.59;
  golden.Add(LinesWith("Measured on", KernelHeader(Build("matmul", {"m=4", "n=6", "k=8"}), facts)));
  facts.latency_ns = 12345678;
  golden.Add(LinesWith("Measured on", KernelHeader(Build("matmul", {"m=4", "n=6", "k=8"}), facts)));
}

TEST(CIdentifierTest, ReplacesInvalidCharacters) {
  EXPECT_EQ(CIdentifier("conv2d"), "conv2d");
  EXPECT_EQ(CIdentifier("2d-conv"), "_2d_conv");
  EXPECT_EQ(CIdentifier(""), "_");
}

}  // namespace
}  // namespace hone::client

// Loads and stores of vectors: every form agrees with the interpreter and uses the expected
// instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "common/target/x86_features.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;

struct Form {
  absl::string_view name;
  absl::string_view inputs;  // shapes of X, without the dtype
  absl::string_view axes;    // of the output
  absl::string_view value;
};

// The last axis is vectorized.
const Form kForms[] = {
    {"contiguous", "[64]", "i: 64", "X[i]"},
    {"tail", "[77]", "i: 77", "X[i]"},
    {"shifted", "[80]", "i: 77", "X[i + 3]"},
    {"stride2", "[161]", "i: 77", "X[2*i]"},
    {"stride2odd", "[160]", "i: 80", "X[2*i + 1]"},
    {"stride3", "[239]", "i: 77", "X[3*i + 2]"},
    {"stride4", "[320]", "i: 80", "X[4*i]"},
    {"stride5", "[400]", "i: 80", "X[5*i + 1]"},
    {"stride7", "[540]", "i: 77", "X[7*i]"},
    {"stride9", "[720]", "i: 80", "X[9*i + 8]"},
    {"reversed", "[80]", "i: 80", "X[79 - i]"},
    {"reversed_tail", "[77]", "i: 77", "X[76 - i]"},
    {"reversed2", "[160]", "i: 80", "X[159 - 2*i]"},
    {"broadcast", "[5]", "h: 5, i: 77", "X[h]"},
    {"column", "[77, 6]", "h: 6, i: 77", "X[i, h]"},
    {"quotient", "[27]", "i: 80", "X[i / 3]"},
    {"remainder", "[7]", "i: 77", "X[i % 7]"},
    {"both", "[11, 7]", "i: 77", "X[i / 7, i % 7]"},
    {"interleaved2", "[2, 40]", "i: 80", "X[i % 2, i / 2]"},
    {"interleaved4", "[4, 20]", "i: 77", "X[i % 4, i / 4]"},
    {"interleaved8", "[8, 10]", "i: 80", "X[i % 8, i / 8]"},
    {"negative_quotient", "[40]", "i: 80", "X[(i - 33) / 4 + 9]"},
    {"position", "[80]", "h: 3, i: 77", "X[i] + {}(index(h * 2 + i % 5 + 3*i))"},
};

std::string Text(const Form& form, absl::string_view dtype) {
  std::string value(form.value);
  if (const size_t at = value.find("{}"); at != std::string::npos)
    value.replace(at, 2, std::string(dtype));
  return absl::StrCat("workload form\ninput X: ", dtype, form.inputs, "\noutput Y[", form.axes,
                      "] = ", value, "\n");
}

std::string Vectorized(absl::string_view workload, int axes, int lanes) {
  if (lanes == 1) return absl::StrCat(workload, "trace 1\n");
  return absl::StrCat(workload, "trace 1\nb0 = block(\"Y\")\n", axes == 1 ? "l1" : "l0, l1",
                      " = loops(b0)\nl2, l3 = split(l1, 0, ", lanes, ")\nvectorize(l3)\n");
}
int AxesOf(const Form& form) { return absl::StrContains(form.axes, ",") ? 2 : 1; }

Values Numbered(int64_t n) {
  Values values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i * 29 % 53));
  return values;
}

// A CPU with slow gathers.
target::Target Zen(absl::string_view cpu) {
  target::Target target = Preset(cpu < "znver4" ? "x86-avx2" : "x86-avx512");
  target.cpu = std::string(cpu);
  return target;
}

std::vector<target::Target> Targets() {
  std::vector<target::Target> targets = RunnableTargets();
  for (const absl::string_view cpu : {"znver5", "znver4", "znver3"}) {
    if (target::UsableX86CpuName(cpu, target::HostHas) != cpu) continue;
    targets.push_back(Zen(cpu));
    break;
  }
  return targets;
}

TEST(MemoryFormTest, EveryFormAgreesWithTheInterpreter) {
  for (const Form& form : kForms) {
    for (const absl::string_view dtype : {"f32", "f64", "f16", "bf16", "i8", "i64"}) {
      const std::string text = Text(form, dtype);
      HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
      const std::vector<Values> inputs = {Numbered(ir::ElementsOf(workload.tensors[0].shape))};
      HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
      for (const target::Target& target : Targets()) {
        for (const int lanes : {1, 3, 8, 16, 32}) {
          const auto actual = RunTrace(target, Vectorized(text, AxesOf(form), lanes), inputs);
          ASSERT_THAT(actual, IsOk()) << text;
          EXPECT_EQ((*actual)[0], expected[0])
              << form.name << " of " << dtype << " with " << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

// Each vector holds a part of a column of Y, so its stores are strided.
TEST(MemoryFormTest, StridedStoresAgreeWithTheInterpreter) {
  const std::string text =
      "workload columns\ninput X: f32[37, 21]\noutput Y[i: 37, j: 21] = X[i, j] * 2.0\n";
  const std::vector<Values> inputs = {Numbered(37 * 21)};
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*ir::ParseWorkload(text), inputs));
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {3, 8, 16}) {
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto actual,
          RunTrace(
              target,
              absl::StrCat(text,
                           "trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, ",
                           lanes, ")\nreorder(l2, l1, l3)\nvectorize(l3)\n"),
              inputs));
      EXPECT_EQ(actual[0], expected[0]);
    }
  }
}

// Counts the lines of the kernel's code that begin with a mnemonic.
int Count(absl::string_view assembly, absl::string_view mnemonic) {
  assembly = assembly.substr(assembly.find("hone_main:"));
  assembly = assembly.substr(0, assembly.find(".Lfunc_end"));
  int count = 0;
  for (const absl::string_view line : absl::StrSplit(assembly, '\n'))
    count += absl::StartsWith(line, absl::StrCat("\t", mnemonic));
  return count;
}

std::string Avx512(absl::string_view form, absl::string_view dtype, int lanes) {
  for (const Form& f : kForms) {
    if (f.name != form) continue;
    const auto assembly =
        AssemblyOf(Preset("x86-avx512"), Vectorized(Text(f, dtype), AxesOf(f), lanes));
    EXPECT_THAT(assembly, IsOk());
    return assembly.ok() ? *assembly : "";
  }
  ADD_FAILURE() << "no form " << form;
  return "";
}

TEST(MemoryFormTest, TailsAreMasked) {
  const std::string code = Avx512("tail", "f32", 16);
  EXPECT_TRUE(absl::StrContains(code, "{%k")) << code;
  EXPECT_EQ(Count(code, "vmovss"), 0) << code;
  EXPECT_EQ(Count(code, "vpinsr"), 0) << code;
  for (const absl::string_view narrow : {"i8", "f16", "bf16"}) {
    const std::string bytes = Avx512("tail", narrow, 32);
    EXPECT_TRUE(absl::StrContains(bytes, "{%k")) << bytes;
    EXPECT_EQ(Count(bytes, "vpinsr") + Count(bytes, "vpextr") + Count(bytes, "movb"), 0)
        << narrow << bytes;
  }
}

TEST(MemoryFormTest, SmallStridesAreShuffles) {
  for (const auto& [form, loads] : {std::pair{"stride2odd", 2}, {"stride4", 4}, {"reversed", 1}}) {
    const std::string code = Avx512(form, "f32", 16);
    EXPECT_EQ(Count(code, "vgather"), 0) << form << code;
    EXPECT_EQ(Count(code, "vmovss") + Count(code, "vinsertps"), 0) << form << code;
    EXPECT_EQ(Count(code, "vperm"), std::max(1, loads - 1)) << form << code;
  }
  const std::string bytes = Avx512("stride5", "i8", 16);
  EXPECT_EQ(Count(bytes, "vpinsr") + Count(bytes, "vpextr"), 0) << bytes;
}

TEST(MemoryFormTest, OtherStridesAndIndicesAreGathersOfWholeRegisters) {
  for (const absl::string_view form : {"stride5", "stride9", "column", "remainder", "quotient"}) {
    const std::string code = Avx512(form, "f32", 16);
    EXPECT_GE(Count(code, "vgatherdps"), 1) << form << code;
    EXPECT_EQ(Count(code, "vgatherq"), 0) << form << " with 64-bit indices" << code;
    EXPECT_EQ(Count(code, "vpinsr") + Count(code, "vinsertps"), 0) << form << code;
  }
}

TEST(MemoryFormTest, SlowGathersBecomeElementLoads) {
  for (const absl::string_view cpu : {"znver3", "znver4", "znver5"}) {
    for (const int64_t stride : {5, 9}) {
      const std::string text = absl::StrCat("workload strided\ninput X: f32[", stride * 64,
                                            "]\noutput Y[i: 64] = X[", stride, "*i + 1]\n");
      HONE_ASSERT_OK_AND_ASSIGN(const auto code, AssemblyOf(Zen(cpu), Vectorized(text, 1, 16)));
      EXPECT_EQ(Count(code, "vgather"), 0) << cpu << code;
      EXPECT_EQ(Count(code, "vmovss") + Count(code, "vinsertps"), 16) << cpu << code;
    }
  }
}

TEST(MemoryFormTest, BroadcastIsOneInstruction) {
  const std::string code = Avx512("broadcast", "f32", 16);
  EXPECT_GE(Count(code, "vbroadcastss"), 1) << code;
  EXPECT_EQ(Count(code, "vgather"), 0) << code;
}

TEST(MemoryFormTest, HalvesConvertInVectors) {
  const std::string text = "workload half\ninput X: f16[64]\noutput Y[i: 64] = X[i] * 2\n";
  for (const absl::string_view preset : {"x86-avx2", "x86-avx512"}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto code, AssemblyOf(Preset(preset), Vectorized(text, 1, 16)));
    EXPECT_GE(Count(code, "vcvtph2ps"), 1) << code;
    EXPECT_GE(Count(code, "vcvtps2ph"), 1) << code;
    EXPECT_LE(Count(code, "vcvtph2ps"), 4) << code;
    EXPECT_EQ(Count(code, "call"), 0) << code;
  }
}

}  // namespace
}  // namespace hone::codegen

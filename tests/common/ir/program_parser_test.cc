#include "tests/oracles/program_parser.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

std::shared_ptr<const Workload> Parsed(absl::string_view text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  return std::make_shared<const Workload>(*std::move(workload));
}

std::shared_ptr<const Workload> Pair() {
  return Parsed(
      "workload pair\n"
      "input A: f32[6, 8]\n"
      "input W: f32[8] constant\n"
      "C[i: 6] = sum(k: 8 where 0 <= i + k - 1 < 8) A[i, k] * W[k]\n"
      "output D[i: 6] = max(C[i], 0.5)\n");
}

// A program with every kind of line.
constexpr char kProgram[] =
    "input A: f32[6, 8] global\n"
    "input W: f32[8] global constant\n"
    "buffer C: f32[6] global\n"
    "output D: f32[6] global\n"
    "buffer W_copy: f32[2, 4] local constant padded align 0 8 1\n"
    "kernel prepack\n"
    "  for a in 8\n"
    "    block W_copy: a0 in 8 = a @nontemporal=1\n"
    "      W_copy[a0 / 4, a0 % 4] = W[a0]\n"
    "kernel main\n"
    "  bound blockIdx.x i_0 in 2 @threads=2\n"
    "    parallel i_1 in 4\n"
    "      block C_init: i in 6 = 4*i_0 + i_1 if 0 <= 4*i_0 + i_1 < 6\n"
    "        C[i] = 0.0\n"
    "      barrier\n"
    "      vectorized k in 8\n"
    "        block C: i in 6 = 4*i_0 + i_1, k in 8 = k (reduce) if 0 <= 4*i_0 + i_1 < 6 inexact\n"
    "          C[i] = sum A[i, k] * W_copy[k / 4, k % 4] where 0 <= i + k - 1 < 8\n"
    "  unrolled unit in 1\n"
    "    for i in 6\n"
    "      block D: i in 6 = i + unit\n"
    "        D[i] = max(C[i], 0.5)\n";

void ExpectRoundTrip(const std::shared_ptr<const Workload>& workload, const std::string& text) {
  HONE_ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram(workload, text));
  EXPECT_EQ(program.ToText(), text);
}

TEST(ProgramParser, EveryLineRoundTrips) {
  const auto workload = Pair();
  ExpectRoundTrip(workload, kProgram);
  const Program program = ParseProgram(workload, kProgram).value();
  ASSERT_EQ(program.kernels.size(), 2u);
  EXPECT_EQ(program.buffers[4].aligns, (std::vector<StorageAlign>{{0, 8, 1}}));
  EXPECT_TRUE(program.buffers[4].padded);
  EXPECT_EQ(program.buffers[3].tensor, 3);
  const NodeId c = program.FindBlock("C");
  ASSERT_NE(c, kNoNode);
  EXPECT_FALSE(program.BlockOf(c).exact);
  EXPECT_FALSE(program.BlockOf(c).has_init);
  EXPECT_EQ(program.BlockOf(c).guards.size(), 1u);
  EXPECT_EQ(program.LoopsAbove(c).size(), 3u);
  EXPECT_TRUE(program.BlockOf(c).iters[1].reduce);
}

TEST(ProgramParser, AnUnscheduledProgramHasTheSameDigestAndMeaning) {
  for (const char* text : {
           "workload tuple\ninput A: f32[5, 7]\noutput (V, I)[i: 5] = argmax(k: 7) (A[i, k], "
           "index(k))\n",
           "workload types\ninput A: i8[5, 7]\ninput B: bf16[7]\nT[i: 5] = max(k: 7) i32(A[i, k])\n"
           "output U[i: 5] = select(T[i] < 3, -f64(T[i]), f64(B[i]) / f64(2.5))\n"
           "output L[i: 5] = i64(T[i]) + index(2*i - 3)\n",
           "workload names\ninput max: f32[4]\ninput sum: f32[4]\nindex[i: 4] = max(max[i], "
           "sum[i]) * 2.0\n"
           "output init[in: 4] = max(if: 4) index[if] + sum[in]\n",
       }) {
    const auto workload = Parsed(text);
    const Program program = Program::FromWorkload(workload);
    const absl::StatusOr<Program> again = ParseProgram(workload, program.ToText());
    ASSERT_THAT(again, IsOk()) << program.ToText();
    EXPECT_EQ(again->ToText(), program.ToText());
    EXPECT_EQ(again->StructuralDigest(), program.StructuralDigest());
    std::vector<Values> inputs;
    for (const BufferId input : workload->Inputs()) {
      Values& values = inputs.emplace_back(ElementsOf(workload->tensors[input].shape));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>((7 * i + 3) % 11) - 5;
    }
    EXPECT_EQ(Interpret(*again, inputs).value(), Interpret(program, inputs).value());
  }
}

// Variables are numbered in the order of their declaration; the sums here have another order.
TEST(ProgramParser, TermsKeepTheOrderOfTheText) {
  std::string text = absl::StrReplaceAll(kProgram, {{"4*i_0 + i_1", "i_1 + 4*i_0"}});
  ExpectRoundTrip(Pair(), text);
  // No order of the atoms gives both, but the program is still valid.
  text = kProgram;
  text.replace(text.find("= 4*i_0 + i_1"), 13, "= i_1 + 4*i_0");
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ParseProgram(Pair(), text));
  EXPECT_EQ(program.StructuralDigest(), ParseProgram(Pair(), kProgram)->StructuralDigest());
}

TEST(ProgramParser, IndicesAreNotSimplified) {
  ExpectRoundTrip(
      Pair(),
      absl::StrReplaceAll(kProgram, {{"i in 6 = i + unit", "i in 6 = i % 100 + 2*(unit / 7)"}}));
}

TEST(ProgramParser, MarksCommentsAndEmptyLinesAreSkipped) {
  std::string text = absl::StrReplaceAll(
      kProgram,
      {{"    parallel", ">   parallel"}, {"kernel main", "\n# the second\n>kernel main"}});
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ParseProgram(Pair(), text));
  EXPECT_EQ(program.ToText(), kProgram);
}

// Loops that got the same name from primitives are printed with different names.
TEST(ProgramParser, LoopsInScopeHaveDistinctNames) {
  Program program = ParseProgram(Pair(), kProgram).value();
  const NodeId d = program.FindBlock("D");
  const NodeId outer = program.LoopsAbove(d)[0];
  const NodeId extra = program.NewLoop("i", ExtentTable::Constant(1));
  const NodeId parent = program.node(outer).parent;
  const size_t position = program.PositionInParent(outer);
  program.node(parent).children[position] = extra;
  program.node(extra).parent = parent;
  program.Append(extra, outer);
  const std::string text = program.ToText();
  EXPECT_NE(text.find("for i.1 in 6"), std::string::npos) << text;
  EXPECT_NE(text.find("block D: i in 6 = i.1 + unit"), std::string::npos) << text;
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, ParseProgram(Pair(), text));
  EXPECT_EQ(again.ToText(), text);
  EXPECT_EQ(again.StructuralDigest(), program.StructuralDigest());
}

TEST(ProgramParser, ErrorsNameTheLocation) {
  const struct {
    const char* from;
    const char* to;
    const char* error;
  } cases[] = {
      {"input A: f32[6, 8]", "input A: f32[6, 9]", "1:1: the workload has no input A: f32[6, 9]"},
      {"input A: f32[6, 8] global\n", "", "the workload's input A is not declared"},
      {"buffer C: f32", "buffer C: f31", "3:11: "},
      {"W_copy: f32[2, 4] local", "W_copy: f32[2, 4] remote", "5:26: a scope is"},
      {"align 0 8 1", "align 2 8 1", "5:54: an alignment is"},
      {"buffer W_copy: f32[2, 4]", "buffer W_copy: f32[2, 0]", "5:23: extent 0"},
      {"buffer W_copy", "buffer C", "5:1: buffer C is declared twice"},
      {"kernel prepack", "kernel 7", "6:8: expected the kernel's name"},
      {"  for a in 8", "  four a in 8", "7:3: expected a loop"},
      {"  for a in 8", "   for a in 8", "7:4: lines must be indented"},
      {"  for a in 8", "  for a in 8 @speed=3", "7:15: 'speed' is not an annotation"},
      {"@threads=2", "@threads=0", "threads is from 1"},
      {"@nontemporal=1", "@threads=1", "'threads' is not an annotation of a block"},
      {"    block W_copy: a0", "        block W_copy: a0", "8:9: indented further"},
      {"a0 in 8 = a ", "a0 in 8 = b ", "8:29: unknown axis 'b'"},
      {"a0 in 8 = a ", "a0 in 8 = a * a ", "8:31: a product of two axes"},
      {"a0 in 8 = a ", "a0 in 8 = 4611686018427387904*a ", "is larger than"},
      {"a0 in 8 = a ", "a0 in 8 = 99999999999999999999*a ", "fits in 64 bits"},
      {"W[a0]", "W[a]", "9:34: unknown axis 'a'"},
      {"W[a0]", "W[a0, a0]", "9:32: W is f32[8], but has 2 indices"},
      {"W[a0]", "V[a0]", "9:32: unknown tensor 'V'"},
      {"W[a0]", "f64(W[a0])", "9:32: this is f64, but W_copy is f32"},
      {"W_copy[a0 / 4, a0 % 4] =", "W_copy[a0 / 0, a0 % 4] =",
       "the divisor must be a positive number"},
      {"      W_copy[a0", "    W_copy[a0", "the line behind a block"},
      {"parallel i_1 in 4", "parallel i_0 in 4", "12:14: an enclosing loop is also called i_0"},
      {"C[i] = 0.0", "C[i] = 0.0 init", "14:20: only a reduction has an init"},
      {"= sum A", "= argmax A", "argmax has 2 components, not 1"},
      {"where 0 <= i", "where 1 <= i", "a guard has the form"},
      {"max(C[i], 0.5)", "max(C[i], 0.5) extra", "expected the end of the line, found 'extra'"},
      {"max(C[i], 0.5)", "max(C[i], 0.5", "expected ')', found the end of the line"},
      {"max(C[i], 0.5)", "max(C[i], \x01)", "unexpected character '\\x1'"},
  };
  for (const auto& c : cases) {
    std::string text = kProgram;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    text.replace(at, std::string(c.from).size(), c.to);
    const auto program = ParseProgram(Pair(), text);
    EXPECT_THAT(program, StatusIs(absl::StatusCode::kInvalidArgument)) << c.to;
    EXPECT_NE(program.status().message().find(c.error), std::string::npos)
        << c.to << ": " << program.status();
  }
  EXPECT_NE(ParseProgram(Pair(), "").status().message().find("1:1: "), std::string::npos);
}

TEST(ProgramParser, ErrorsNameTheLimits) {
  const std::string buffers = std::string(kProgram).substr(0, std::string(kProgram).find("kernel"));
  std::string deep = absl::StrCat(buffers, "kernel main\n");
  for (int d = 1; d <= kMaxProgramDepth; ++d)
    absl::StrAppend(&deep, std::string(2 * d, ' '), "for l", d, " in 1\n");
  EXPECT_NE(ParseProgram(Pair(), deep).status().message().find("nested deeper"), std::string::npos);
  std::string many = absl::StrCat(buffers, "kernel main\n");
  for (int n = 0; n < kMaxProgramNodes; ++n) many += "  barrier\n";
  EXPECT_FALSE(ParseProgram(Pair(), many).ok());
  std::string cases(kProgram);
  std::string guarded = "sum ";
  for (int n = 1; n < 6; ++n) {
    for (const char* const axis : {"i", "k"})
      absl::StrAppend(&guarded, "(1.0 where 0 <= ", axis, " - ", n, " < 8 else 0.0) + ");
  }
  cases.replace(cases.find("sum "), 4, guarded);
  EXPECT_NE(ParseProgram(Pair(), cases).status().message().find("have more than 32 cases"),
            std::string::npos)
      << ParseProgram(Pair(), cases).status();
  std::string large = absl::StrCat(buffers, std::string(kMaxProgramTextBytes, '#'));
  EXPECT_NE(ParseProgram(Pair(), large).status().message().find("at most"), std::string::npos);
}

}  // namespace
}  // namespace hone::ir

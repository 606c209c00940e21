#include "common/schedule/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kOpen[] =
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_tile(l0, parts=2, max_inner=64)\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "x2 = sample_categorical(candidates=[1, 2, 4])\n"
    "x3, x4 = sample_register_tile(candidates=[4, 2, 3, 1])\n"
    "l5, l6, l7 = register_tile(b0, l4, l1, l2, x3, x4, 16, x2)\n"
    "transform_layout(b0, \"i, j -> j, i\")\n";
constexpr char kDecided[] =
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_tile(l0, parts=2, max_inner=64) = [2, 40]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "x2 = sample_categorical(candidates=[1, 2, 4]) = [4]\n"
    "x3, x4 = sample_register_tile(candidates=[4, 2, 3, 1]) = [3, 1]\n"
    "l5, l6, l7 = register_tile(b0, l4, l1, l2, x3, x4, 16, x2)\n"
    "transform_layout(b0, \"i, j -> j, i\")\n";

TEST(TraceTextTest, OpenAndDecidedRoundTrip) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto open, ParseTrace(kOpen));
  EXPECT_TRUE(open.decisions.empty());
  EXPECT_EQ(open.trace.decisions, 5);
  EXPECT_EQ(open.trace.ToText(), kOpen);
  HONE_ASSERT_OK_AND_ASSIGN(const auto decided, ParseTrace(kDecided));
  EXPECT_THAT(decided.decisions, ElementsAre(2, 40, 4, 3, 1));
  EXPECT_EQ(decided.trace.instructions, open.trace.instructions);
  EXPECT_EQ(decided.trace.ToText(decided.decisions), kDecided);
  EXPECT_EQ(decided.trace.ToText(), kOpen);
}

TEST(TraceTextTest, IgnoresNamesAndLayout) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto parsed,
      ParseTrace("\n  # a comment\nproducer=block( \"C\" )\r\nrow ,column,k=loops(producer)  # "
                 "loops\n\nparallel(row)"));
  EXPECT_EQ(parsed.trace.ToText(), "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nparallel(l0)\n");
}

TEST(TraceTextTest, BuilderWritesTheSame) {
  TraceBuilder builder;
  const Operand block = builder.Add("block", {Text("C")})[0];
  const std::vector<Operand> loops = builder.Add("loops", {block}, {}, 3);
  const std::vector<Operand> tile =
      builder.Add("sample_tile", {loops[0]}, {{"parts", {2}}, {"max_inner", {64}}});
  EXPECT_EQ(tile.size(), 2u);
  builder.Add("split", {loops[0], tile[0], tile[1]}, {}, 2);
  const Trace trace = std::move(builder).Build();
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed, ParseTrace(trace.ToText()));
  EXPECT_EQ(parsed.trace.instructions, trace.instructions);
  EXPECT_EQ(parsed.trace.decisions, trace.decisions);
  EXPECT_EQ(parsed.trace.loops, trace.loops);
}

TEST(TraceTextTest, ErrorsNameTheLocation) {
  const std::pair<std::string, const char*> kCases[] = {
      {"b0 = foo(\"C\")",
       "1:9: unknown primitive 'foo'; the primitives are add_unit_loop, annotate, "},
      {"l1 = spilt(\"C\")", "1:11: unknown primitive 'spilt'; did you mean 'split'?"},
      {"foo", "1:4: unknown primitive 'foo'"},
      {"b0 = block", "1:11: expected '('"},
      {"b0 = block(\"C\"", "1:15: expected ')'"},
      {"b0 = block(\"C", "1:13: this string does not end"},
      {"b0 = block(C)", "1:12: 'C' is not set before; write \"C\" for a string"},
      {"block0 = block(\"C\")\nl0 = loops(blok0)",
       "2:12: 'blok0' is not set before; did you mean 'block0'?"},
      {"b0 = block(3)",
       "1:12: the argument 'name' of block must be a string in quotes, not a number; the form is "
       "block "
       "= block(\"name\")"},
      {"b0 = block()",
       "1:13: the argument 'name' of block is missing; the form is block = block(\"name\")"},
      {"b0 = block(\"C\", \"D\")",
       "1:17: block takes fewer arguments; the form is block = block(\"name\")"},
      {"b0, b1 = block(\"C\")", "1:20: block gives 1 result, not 2; the form is block = block("},
      {"block(\"C\")", "1:11: block gives 1 result, not 0"},
      {"b0 = block(\"C\")\nb0 = block(\"D\")", "2:16: result 'b0' is not a valid new name"},
      {"5 = block(\"C\")", "1:15: result '5' is not a valid new name"},
      {"= block(\"C\")", "1:13: result '' is not a valid new name"},
      {"b0 b1 = block(\"C\")", "1:4: unknown primitive 'b0'"},
      {"b0, b1", "1:7: expected '='"},
      {"b0 = block(\"C\") junk", "1:17: unexpected text after the instruction"},
      {"b0 = block(\"C\") = [1]", "1:17: unexpected text after the instruction"},
      {"b0 = block(\"C\")\nl0 = loops(b1)", "2:12: 'b1' is not set before"},
      {"b0 = block(\"C\")\nparallel(b0)",
       "2:10: the argument 'loop' of parallel must be a loop, not a block; the form is "
       "parallel(loop)"},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nl1, l2 = split(l0, 99999999999999999999)",
       "3:20: expected a whole number that fits in 64 bits"},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nl1, l2 = split(l0, -)", "3:20: expected a whole number"},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nreorder(l0,)", "3:12: '' is not set before"},
      {"b0 = block(\"C\")\nl0, l1 = loops(b0)\ncompute_at(b0)",
       "3:15: the argument 'loop' of compute_at is missing; the form is compute_at(block, loop)"},
      {"b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2 = rfactor(b0, l1, 0, 1)",
       "3:25: rfactor takes fewer arguments; the form is block = rfactor(block, loop, "
       "[dimension])"},
      {"x0 = sample_categorical(candidates=[])", "1:39: candidates must be a list of rows of 1"},
      {"x0 = sample_categorical()", "1:26: sample_categorical needs candidates="},
      {"x0, x1 = sample_register_tile(candidates=[1, 2, 3])",
       "1:52: candidates must be a list of rows of 2"},
      {"x0 = sample_categorical(candidates=[1, 2], max_inner=3)",
       "1:56: sample_categorical has no attribute 'max_inner'; the form is number = "
       "sample_categorical(candidates=[n, …])"},
      {"x0 = sample_categorical(candidates=[1, 2], candidates=3)",
       "1:44: attribute candidates is given twice"},
      {"b0 = block(\"C\")\nl0 = sample_compute_location(b0, outermost=0)",
       "2:46: outermost must be one number from 1 to 64"},
      {"b0 = block(\"C\")\nl0 = sample_compute_location(b0, parts=2)",
       "2:42: sample_compute_location has no attribute 'parts'"},
      {"b0 = block(\"C\", parts=2)",
       "1:25: block has no attribute 'parts'; the form is block = block("},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nx0 = sample_tile(l0)", "3:21: sample_tile needs parts="},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nx0 = sample_tile(l0, parts=17)",
       "3:31: parts must be one number from 1 to 16"},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nx0, x1 = sample_tile(l0, parts=2, max_inner=-1)",
       "3:48: max_inner must be one number, 0 or more"},
      {"b0 = block(\"C\")\nl0 = loops(b0)\nx0, x1 = sample_tile(l0, parts=3)",
       "3:34: sample_tile draws 3 numbers here, but names 2"},
      {"x0 = sample_categorical(candidates=[1, 2]) = [1, 2]",
       "1:52: expected 1 decisions, found 2"},
      {"x0 = sample_categorical(candidates=[1, 2]) = 1", "1:46: expected '['"},
      {"x0 = sample_categorical(candidates=[1, 2]) = [1]\nx1 = sample_categorical(candidates=[1, "
       "2])",
       "2:43: some decisions are given and others are open; give all or none"},
      {"x0 = sample_categorical(candidates=[1, 2])\nx1 = sample_categorical(candidates=[1, 2]) = "
       "[2]",
       "2:45: some decisions are given and others are open; give all or none"},
      {std::string("b0 = block(\"C\")\0", 16), "1:16: unexpected text after the instruction"},
  };
  for (const auto& [text, error] : kCases) {
    const auto parsed = ParseTrace(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(error))) << text;
  }
  std::string many;
  for (int i = 0; i < 4097; ++i) absl::StrAppend(&many, "b", i, " = block(\"C\")\n");
  EXPECT_THAT(std::string(ParseTrace(many).status().message()),
              StartsWith("4097:1: more than 4096 instructions"));
}

// Every text with one changed character is parsed or rejected without a crash.
TEST(TraceTextTest, DamagedTextsDoNotCrash) {
  const std::string text = kDecided;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '\n', '"', '(', ']', '=', ',', '9', '-', 'l', '#'}) {
      std::string damaged = text;
      damaged[at] = c;
      const auto parsed = ParseTrace(damaged);
      if (!parsed.ok()) continue;
      const std::string printed = parsed->trace.ToText(parsed->decisions);
      const auto again = ParseTrace(printed);
      ASSERT_THAT(again, IsOk()) << printed;
      EXPECT_EQ(again->trace.instructions, parsed->trace.instructions);
    }
  }
}

constexpr char kWorkload[] =
    "workload w\ninput A: f32[80, 32]\ninput B: f32[32, 48]\noutput C[i: 80, j: 48] = sum(k: 32) "
    "A[i, k] * B[k, j]\n";

TEST(TraceFileTest, RoundTrips) {
  const std::string text = absl::StrCat(kWorkload, "trace 1\n", kDecided);
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, ParseTraceFile(text));
  EXPECT_EQ(TraceFileText(file.workload, file.parsed.trace, file.parsed.decisions), text);
}

TEST(TraceFileTest, AStageMayBeNamedTrace) {
  const auto file = ParseTraceFile(
      "workload w\ninput A: f32[4]\ntrace[i: 4] = A[i] + 1.0\n"
      "output B[i: 4] = trace[i] * 2.0\ntrace 1\nb0 = block(\"trace\")\n");
  EXPECT_THAT(file, IsOk());
  for (const char* const header : {"trace 1", "  trace 1\r", "trace 22", "trace"}) {
    EXPECT_TRUE(IsTraceHeader(header)) << header;
  }
  for (const char* const line :
       {"trace [i: 4] = A[i]", "trace1", "traces 1", "trace 1 [i: 4]", ""}) {
    EXPECT_FALSE(IsTraceHeader(line)) << line;
  }
}

TEST(TraceFileTest, ErrorsUseLinesOfTheFile) {
  const auto error = [](const std::string& text) {
    return std::string(ParseTraceFile(text).status().message());
  };
  EXPECT_THAT(error(std::string(2 << 20, ' ')), StartsWith("1:1: a trace file of 2097152 bytes"));
  EXPECT_THAT(error(absl::StrCat(kWorkload, "trace 1\nfoo()\n")),
              StartsWith("6:4: unknown primitive 'foo'"));
  EXPECT_THAT(error(absl::StrCat(kWorkload, "trace 2\n")),
              StartsWith("5:1: 'trace 2': this program reads 'trace 1' only"));
  EXPECT_THAT(error(kWorkload), StartsWith("5:1: a line 'trace 1' must follow the workload"));
  EXPECT_THAT(error("workload w\ninput A: f31[4]\ntrace 1\n"),
              StartsWith("2:10: unknown dtype 'f31'"));
  EXPECT_THAT(error(std::string((1 << 20) + 1, '#')), HasSubstr("at most 1048576"));
}

class ReplayTest : public testing::Test {
 protected:
  ReplayTest()
      : workload_(std::make_shared<const ir::Workload>(
            *ir::ParseWorkload("workload w\ninput A: f32[80, 32]\ninput B: f32[32, 48]\nC[i: 80, "
                               "j: 48] = sum(k: 32) A[i, k] * B[k, j]\n"
                               "output D[i: 80, j: 48] = C[i, j]\n"))),
        trace_(ParseTrace(kOpen)->trace) {}

  std::string Error(std::vector<int64_t> decisions) {
    return std::string(Replay(workload_, trace_, decisions).status().message());
  }

  std::shared_ptr<const ir::Workload> workload_;
  Trace trace_;
};

TEST_F(ReplayTest, IsDeterministic) {
  const std::vector<int64_t> decisions = {2, 40, 4, 3, 1};
  const auto first = Replay(workload_, trace_, decisions),
             second = Replay(workload_, trace_, decisions);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->StructuralDigest(), second->StructuralDigest());
  EXPECT_EQ(first->ToText(), second->ToText());
  EXPECT_NE(first->StructuralDigest(),
            Replay(workload_, trace_, {2, 40, 2, 3, 1})->StructuralDigest());
}

TEST_F(ReplayTest, RefusesDecisionsThatDoNotFit) {
  EXPECT_EQ(Error({}), "the trace takes 5 decisions, not 0");
  EXPECT_EQ(Error({2, 40, 4, 3}), "the trace takes 5 decisions, not 4");
  EXPECT_EQ(Error({2, 40, 4, 3, 1, 7}), "the trace takes 5 decisions, not 6");
  for (const std::vector<int64_t>& wrong :
       std::vector<std::vector<int64_t>>{{2, 41, 4, 3, 1},
                                         {3, 40, 4, 3, 1},
                                         {1, 80, 4, 3, 1},
                                         {2, 0, 4, 3, 1},
                                         {2, -40, 4, 3, 1},
                                         {-2, -40, 4, 3, 1},
                                         {2, INT64_MAX, 4, 3, 1},
                                         {2, INT64_MIN, 4, 3, 1}}) {
    const bool legal = wrong[1] > 0 && wrong[1] <= 64 && wrong[0] == (80 + wrong[1] - 1) / wrong[1];
    EXPECT_EQ(Error(wrong).empty(), legal) << wrong[0] << " " << wrong[1] << ": " << Error(wrong);
    if (!legal) {
      EXPECT_THAT(Error(wrong), StartsWith("instruction 3 (sample_tile): decision ["));
    }
  }
  EXPECT_THAT(Error({2, 40, 3, 3, 1}),
              StartsWith("instruction 5 (sample_categorical): decision [3] is not legal here"));
  EXPECT_THAT(
      Error({2, 40, 4, 4, 1}),
      StartsWith("instruction 6 (sample_register_tile): decision [4, 1] is not legal here"));
}

TEST_F(ReplayTest, DeadRegistersAreNamed) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto parsed,
      ParseTrace(
          "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l0, 0, 4)\nparallel(l0)\n"));
  EXPECT_EQ(Replay(workload_, parsed.trace, {}).status().message(),
            "instruction 4 (parallel): loop l0 no longer exists");
}

// Every value that a site draws is legal there, and the decisions reproduce the program.
TEST_F(ReplayTest, DrawnDecisionsAreLegal) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    RandomDecider decider(rng);
    HONE_ASSERT_OK_AND_ASSIGN(const auto replayed, ReplayWith(workload_, trace_, decider));
    ASSERT_EQ(replayed.sites.size(), 3u);
    for (const Site& site : replayed.sites) {
      EXPECT_TRUE(
          site.IsLegal(absl::MakeConstSpan(replayed.decisions).subspan(site.begin, site.count)));
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto again, Replay(workload_, trace_, replayed.decisions));
    EXPECT_EQ(again.StructuralDigest(), replayed.program.StructuralDigest());
  }
}

// A site accepts exactly the tilings of its extent.
TEST(SiteTest, LegalTilesAreTheTilings) {
  for (const int64_t extent : {1, 2, 7, 12, 13}) {
    for (const int64_t max_inner : {0, 1, 4}) {
      const Site perfect{
          .kind = Site::Kind::kPerfectTile, .count = 2, .extent = extent, .max_inner = max_inner};
      const Site tile{
          .kind = Site::Kind::kTile, .count = 2, .extent = extent, .max_inner = max_inner};
      for (int64_t a = -1; a <= extent + 1; ++a) {
        for (int64_t b = -1; b <= extent + 1; ++b) {
          const bool small = b >= 1 && (max_inner == 0 || b <= max_inner);
          EXPECT_EQ(perfect.IsLegal({a, b}), small && a * b == extent) << a << " " << b;
          EXPECT_EQ(tile.IsLegal({a, b}), small && b <= extent && a == (extent + b - 1) / b)
              << a << " " << b;
        }
      }
      // Every legal tiling is drawn.
      Rng rng(static_cast<uint64_t>(extent * 10 + max_inner));
      std::set<std::vector<int64_t>> drawn;
      for (int i = 0; i < 2000; ++i) {
        std::vector<int64_t> values(2);
        perfect.Sample(rng, absl::MakeSpan(values));
        EXPECT_TRUE(perfect.IsLegal(values));
        drawn.insert(values);
        tile.Sample(rng, absl::MakeSpan(values));
        EXPECT_TRUE(tile.IsLegal(values));
      }
      for (int64_t b = 1; b <= extent; ++b) {
        EXPECT_EQ(drawn.contains({extent / b, b}), perfect.IsLegal({extent / b, b}));
      }
    }
  }
}

TEST(RegistryTest, UsageShowsTheArguments) {
  const std::pair<const char*, const char*> kCases[] = {
      {"cache_read", "block = cache_read(block, \"buffer\", \"scope\")"},
      {"split", "loop, … = split(loop, factor, …)"},
      {"loops", "loop, … = loops(block, [innermost])"},
      {"annotate", "annotate(loop_or_block, \"key\", value)"},
      {"register_tile",
       "loop, loop, loop = register_tile(block, row, vector, reduce, rows, vectors, lanes, "
       "k_unroll)"},
      {"sample_tile", "number, … = sample_tile(loop, parts=n, [max_inner=n])"},
      {"sample_register_tile", "number, number = sample_register_tile(candidates=[n, …])"},
  };
  for (const auto& [name, usage] : kCases) EXPECT_EQ(FindPrimitive(name)->Usage(), usage);
}

TEST(RegistryTest, IsSortedAndComplete) {
  absl::string_view last;
  for (const Primitive& primitive : Primitives()) {
    EXPECT_LT(last, primitive.name);
    last = primitive.name;
    EXPECT_EQ(FindPrimitive(primitive.name), &primitive);
    EXPECT_GE(primitive.version, 1);
    EXPECT_FALSE(primitive.meaning.empty());
    // Named arguments come last, and only the last of the others may be left out or repeated.
    const auto is_named = [](const Argument& argument) { return argument.IsNamed(); };
    const auto named =
        std::find_if(primitive.arguments.begin(), primitive.arguments.end(), is_named);
    EXPECT_TRUE(std::all_of(named, primitive.arguments.end(), is_named)) << primitive.name;
    for (auto argument = primitive.arguments.begin(); argument != named; ++argument) {
      EXPECT_FALSE(argument->name.empty()) << primitive.name;
      EXPECT_TRUE(argument->count == Argument::Count::kOne || argument + 1 == named)
          << primitive.name;
    }
    EXPECT_EQ(primitive.samples, primitive.name.substr(0, 7) == "sample_");
  }
  EXPECT_EQ(FindPrimitive("tensorise"), nullptr);
}

}  // namespace
}  // namespace hone::schedule

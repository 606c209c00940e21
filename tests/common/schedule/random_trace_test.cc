// Legal primitives do not change what a program computes and cause no races. The trace and the
// program's text parse back to the same program. A rejected primitive changes nothing.
//
// HONE_TRACES: number of traces over all shards. HONE_SEED: first seed, to repeat a failure.
// HONE_FAILURES: number of failures that each shard shrinks and prints before it stops.

#include "tests/common/schedule/random_trace.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/interpreter.h"
#include "common/schedule/primitive/algorithm.h"
#include "common/schedule/replay.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/race_check.h"
#include "tests/common/schedule/random_step.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/common/schedule/shrink.h"
#include "tests/oracles/program_parser.h"

namespace hone::schedule {
namespace {

constexpr int kShards = 4;
constexpr int64_t kTraces = 20000;

std::string CheckValues(const RandomTrace& random) {
  Rng rng(random.seed, 2);
  const std::vector<ir::Values> inputs = SmallIntegerInputs(*random.workload, rng);
  const auto expected = ir::Interpret(*random.workload, inputs);
  const auto actual = ir::Interpret(random.program, inputs);
  if (!expected.ok()) return absl::StrCat("the workload: ", expected.status().message());
  if (!actual.ok()) return absl::StrCat("the program: ", actual.status().message());
  for (size_t t = 0; t < expected->size(); ++t) {
    for (size_t e = 0; e < (*expected)[t].size(); ++e) {
      const double want = (*expected)[t][e], got = (*actual)[t][e];
      if (want == got) continue;
      return absl::StrCat("element ", e, " of output ", t, " is ", got, ", expected ", want);
    }
  }
  return "";
}

// The trace's text parses back and replays to the same program; the extents follow from the
// decisions.
std::string CheckReplay(const RandomTrace& random) {
  const std::string text = TraceFileText(*random.workload, random.trace, random.decisions);
  const auto file = ParseTraceFile(text);
  if (!file.ok()) return absl::StrCat("the trace's text does not parse: ", file.status().message());
  if (file->parsed.trace.instructions != random.trace.instructions ||
      file->parsed.decisions != random.decisions ||
      TraceFileText(file->workload, file->parsed.trace, file->parsed.decisions) != text) {
    return "the trace's text reads back as another trace";
  }
  const auto program = Replay(std::make_shared<const ir::Workload>(file->workload),
                              file->parsed.trace, file->parsed.decisions);
  if (!program.ok()) return absl::StrCat("the replay is refused: ", program.status().message());
  if (program->StructuralDigest() != random.program.StructuralDigest())
    return absl::StrCat("the replay gives another program:\n", program->ToText());
  for (const ir::Node& node : program->nodes) {
    if (node.kind != ir::Node::Kind::kLoop) continue;
    if (program->extents.Evaluate(node.extent, random.decisions) != node.extent.value) {
      return absl::StrCat("the extent of ", program->atoms[node.var].name,
                          " does not follow from the decisions");
    }
  }
  return "";
}

std::string CheckProgramText(const RandomTrace& random) {
  const std::string text = random.program.ToText();
  const absl::StatusOr<ir::Program> again = ir::ParseProgram(random.workload, text);
  if (!again.ok())
    return absl::StrCat("the program's text does not parse: ", again.status().message());
  if (again->ToText() != text)
    return absl::StrCat("the program's text reads back as\n", again->ToText());
  if (again->StructuralDigest() != random.program.StructuralDigest())
    return "the program's text reads back with another digest";
  return "";
}

// Returns "" or a description of the problem.
std::string Problem(const RandomTrace& random) {
  if (!random.refusals.ok()) return std::string(random.refusals.message());
  if (std::string problem = CheckValues(random); !problem.empty()) return problem;
  if (const absl::Status races = CheckNoRaces(random.program); !races.ok())
    return std::string(races.message());
  if (std::string problem = CheckReplay(random); !problem.empty()) return problem;
  return CheckProgramText(random);
}

class RandomTraceTest : public testing::TestWithParam<int> {};

TEST_P(RandomTraceTest, EveryLegalTraceComputesTheWorkload) {
  const SeedRange range =
      SeedRange::FromEnvironment("HONE_TRACES", kTraces).Shard(GetParam(), kShards);
  const char* const failures = std::getenv("HONE_FAILURES");
  int failures_left = failures != nullptr ? std::atoi(failures) : 1;
  int64_t steps = 0, refused = 0;
  std::map<std::string, int64_t> taken;
  for (int64_t seed = range.first; seed < range.end() && failures_left > 0; ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed),
                                               /*attempts=*/8 + static_cast<int>(seed % 4) * 8);
    steps += static_cast<int64_t>(random.steps.size());
    refused += random.refused;
    for (const Step& step : random.steps) ++taken[step.primitive];
    if (Problem(random).empty()) continue;
    --failures_left;
    const RandomTrace minimal =
        Shrink(random, [](const RandomTrace& candidate) { return !Problem(candidate).empty(); });
    ADD_FAILURE() << Problem(minimal) << "\n"
                  << Describe(minimal) << RepeatHint(seed, "HONE_TRACES");
  }
  std::cout << range.count << " traces from seed " << range.first << " on: " << steps
            << " steps taken, " << refused << " refused\n"
            << absl::StrJoin(taken, ", ", absl::PairFormatter(" ")) << "\n";
  // Every primitive was used.
  if (range.count < 1000) return;
  for (const char* name : {"split",          "fuse",
                           "reorder",        "parallel",
                           "vectorize",      "unroll",
                           "compute_at",     "reverse_compute_at",
                           "compute_inline", "decompose_reduction",
                           "register_tile",  "transform_layout",
                           "cache_write",    "cache_read",
                           "thread_count",   "annotate",
                           "rfactor",        "reverse_compute_inline",
                           "add_unit_loop",  "loop_partition",
                           "reorder_space",  "set_scope",
                           "storage_align",  "bind",
                           "double_buffer",  "software_pipeline",
                           "blockize",       "pad_einsum",
                           "tensorize",      "decompose_padding"}) {
    EXPECT_GT(taken[name], range.count / 200) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomTraceTest, testing::Range(0, kShards));

// What a program is, including the names that its next blocks and buffers would get.
std::string StateOf(const ir::Program& program) {
  return absl::StrCat(program.StructuralDigest().ToHex(), "\n", program.ToText(),
                      program.blocks.size(), " blocks, ", program.buffers.size(), " buffers");
}

// Uses of primitives that are mostly illegal, on programs in any state of their schedules.
TEST(RandomRefusalTest, ARefusedPrimitiveChangesNothing) {
  constexpr int kAttempts = 40;
  const SeedRange range = SeedRange::FromEnvironment("HONE_TRACES", 2000);
  std::map<std::string, int64_t> refused;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed),
                                               /*attempts=*/static_cast<int>(seed % 4) * 8);
    const std::string before = StateOf(random.program);
    Rng rng(static_cast<uint64_t>(seed), 5);
    ir::Program program = random.program;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Step step = RandomSteps(rng, program).back();
      if (attempt % 2 == 0) step = Garbled(rng, step);
      TraceBuilder builder;
      std::vector<int64_t> decisions;
      const absl::Status status = TakeStep(step, program, builder, decisions);
      if (status.ok()) {
        program = random.program;
        continue;
      }
      ++refused[step.primitive];
      ASSERT_EQ(StateOf(program), before)
          << step.primitive << " changed the program and then refused: " << status.message()
          << RepeatHint(seed, "HONE_TRACES");
    }
    // Rewrites are illegal after other primitives.
    if (random.steps.empty()) continue;
    const Rewrite& rewrite = Rewrites()[rng.Below(Rewrites().size())];
    const std::string stage = program.BlockOf(program.AllBlocks()[0]).name;
    if (!RewriteAlgorithm(program, rewrite.name, stage, {2}).ok()) {
      ++refused["rewrite"];
      ASSERT_EQ(StateOf(program), before) << rewrite.name;
    }
  }
  std::cout << absl::StrJoin(refused, ", ", absl::PairFormatter(" ")) << "\n";
  if (range.count < 1000) return;
  for (const Primitive& primitive : Primitives()) {
    const bool looks = primitive.samples || primitive.name == "block" || primitive.name == "loops";
    EXPECT_TRUE(looks || refused[std::string(primitive.name)] > 0) << primitive.name;
  }
}

}  // namespace
}  // namespace hone::schedule

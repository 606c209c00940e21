// Whatever legal primitives do to a program, it computes what the workload computes.
//
// HONE_TRACES: how many traces (default 3000). HONE_SEED: where the seeds begin (default 1), to
// repeat a failure.

#include "tests/common/schedule/random_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "tests/common/schedule/race_check.h"
#include "tests/common/schedule/random_workload.h"

namespace hone::schedule {
namespace {

int64_t FromEnv(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

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

// The trace as text, read back and replayed, gives the same program; its extents follow from the
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

// "" or what is wrong.
std::string Problem(const RandomTrace& random) {
  if (!random.refusals.ok()) return std::string(random.refusals.message());
  if (std::string problem = CheckValues(random); !problem.empty()) return problem;
  if (const absl::Status races = CheckNoRaces(random.program); !races.ok())
    return std::string(races.message());
  return CheckReplay(random);
}

TEST(RandomTraceTest, EveryLegalTraceComputesTheWorkload) {
  const int64_t first = FromEnv("HONE_SEED", 1), traces = FromEnv("HONE_TRACES", 3000);
  int64_t steps = 0, refused = 0;
  std::map<std::string, int64_t> taken;
  int failures = 0;
  for (int64_t seed = first; seed < first + traces && failures < FromEnv("HONE_FAILURES", 1);
       ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed),
                                               /*attempts=*/8 + static_cast<int>(seed % 4) * 8);
    steps += static_cast<int64_t>(random.steps.size());
    refused += random.refused;
    for (const Step& step : random.steps) ++taken[step.primitive];
    const std::string problem = Problem(random);
    if (problem.empty()) continue;
    ++failures;
    const RandomTrace minimal =
        Shrink(random, [](const RandomTrace& candidate) { return !Problem(candidate).empty(); });
    ADD_FAILURE() << Problem(minimal) << "\n"
                  << Describe(minimal) << "repeat with HONE_SEED=" << seed << " HONE_TRACES=1";
  }
  std::cout << "seeds " << first << " to " << first + traces - 1 << ": " << steps
            << " steps taken, " << refused << " refused\n"
            << absl::StrJoin(taken, ", ", absl::PairFormatter(" ")) << "\n";
  // Every primitive was really used.
  if (traces < 1000) return;
  for (const char* name :
       {"split",          "fuse",
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
        "decompose_padding"}) {
    EXPECT_GT(taken[name], traces / 200) << name;
  }
}

}  // namespace
}  // namespace hone::schedule

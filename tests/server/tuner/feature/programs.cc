#include "tests/server/tuner/feature/programs.h"

#include <cstdio>
#include <cstdlib>

#include "common/base/rng.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::feature {
namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::abort();
}

std::shared_ptr<const ir::Workload> WorkloadOf(const NamedTrace& trace) {
  absl::StatusOr<ir::Workload> workload = op::BuildWorkload(trace.op, trace.words);
  if (!workload.ok()) Die(workload.status());
  return std::make_shared<const ir::Workload>(*std::move(workload));
}

}  // namespace

schedule::Trace TraceOf(const NamedTrace& trace) {
  absl::StatusOr<schedule::ParsedTrace> parsed = schedule::ParseTrace(trace.trace);
  if (!parsed.ok()) Die(parsed.status());
  return std::move(parsed->trace);
}

const std::vector<NamedTrace>& Traces() {
  static const auto* traces = new std::vector<NamedTrace>{
      {"plain", "matmul", {"m=64", "n=64", "k=64"}, R"(
b0 = block("C")
)"},
      {"tiled", "matmul", {"m=256", "n=256", "k=256"}, R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1, x2 = sample_perfect_tile(l0, parts=3, max_inner=16)
x3, x4, x5 = sample_perfect_tile(l1, parts=3, max_inner=64)
x6, x7 = sample_perfect_tile(l2, parts=2, max_inner=64)
l3, l4, l5 = split(l0, x0, x1, x2)
l6, l7, l8 = split(l1, x3, x4, x5)
l9, l10 = split(l2, x6, x7)
reorder(l3, l6, l9, l4, l7, l10, l5, l8)
b1 = decompose_reduction(b0, l9)
l11 = fuse(l3, l6)
parallel(l11)
unroll(l5)
vectorize(l8)
)"},
      {"packed", "matmul", {"m=256", "n=256", "k=256"}, R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1 = sample_register_tile(candidates=[14, 2, 8, 2, 6, 4, 4, 1])
x2 = sample_categorical(candidates=[1, 2, 4])
x3, x4 = sample_tile(l1, parts=2, max_inner=128)
x5, x6 = sample_tile(l2, parts=2, max_inner=0)
x7, x8 = sample_tile(l0, parts=2, max_inner=0)
l3, l4 = split(l1, x3, x4)
l5, l6 = split(l2, x5, x6)
l7, l8 = split(l0, x7, x8)
reorder(l3, l5, l7, l8, l4, l6)
b1 = cache_read(b0, "B", "global")
compute_at(b1, l5)
transform_layout(b1, "k, j -> j / 32, k, j % 32")
l9, l10, l11 = register_tile(b0, l8, l4, l6, x0, x1, 16, x2)
parallel(l3)
)"},
      {"fused", "dense_relu", {"m=96", "n=128", "k=64"}, R"(
b0 = block("C")
b1 = block("D")
l0, l1 = loops(b1)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=0)
x2, x3 = sample_perfect_tile(l1, parts=2, max_inner=64)
l2, l3 = split(l0, x0, x1)
l4, l5 = split(l1, x2, x3)
reorder(l2, l4, l3, l5)
compute_at(b0, l4)
vectorize(l5)
parallel(l2)
)"},
      {"conv", "conv2d", {"n=1", "h=14", "w=14", "ci=64", "co=64", "k=3", "s=1", "p=1"}, R"(
b0 = block("Y")
l0, l1, l2, l3, l4, l5, l6 = loops(b0)
x0, x1 = sample_perfect_tile(l3, parts=2, max_inner=64)
x2, x3 = sample_tile(l2, parts=2, max_inner=14)
x4, x5 = sample_perfect_tile(l6, parts=2, max_inner=0)
l7, l8 = split(l3, x0, x1)
l9, l10 = split(l2, x2, x3)
l11, l12 = split(l6, x4, x5)
reorder(l0, l1, l7, l9, l11, l4, l5, l12, l10, l8)
l13 = fuse(l0, l1, l7)
parallel(l13)
vectorize(l8)
unroll(l10)
)"},
  };
  return *traces;
}

const NamedTrace& TraceCalled(absl::string_view name) {
  for (const NamedTrace& trace : Traces()) {
    if (trace.name == name) return trace;
  }
  Die(absl::NotFoundError("no trace of that name"));
}

bool DrawProgram(const NamedTrace& trace, uint64_t seed, ir::Program& program,
                 std::vector<int64_t>* decisions) {
  Rng rng(seed);
  schedule::RandomDecider decider(rng);
  absl::StatusOr<schedule::Replayed> replayed =
      schedule::ReplayWith(WorkloadOf(trace), TraceOf(trace), decider);
  if (!replayed.ok()) {
    if (replayed.status().code() != absl::StatusCode::kFailedPrecondition) Die(replayed.status());
    return false;
  }
  program = std::move(replayed->program);
  if (decisions != nullptr) *decisions = std::move(replayed->decisions);
  return true;
}

ir::Program ProgramOf(const NamedTrace& trace, const std::vector<int64_t>& decisions) {
  absl::StatusOr<ir::Program> program =
      schedule::Replay(WorkloadOf(trace), TraceOf(trace), decisions);
  if (!program.ok()) Die(program.status());
  return *std::move(program);
}

ir::Program ProgramOf(absl::string_view workload_text) {
  absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(workload_text);
  if (!workload.ok()) Die(workload.status());
  return ir::Program::FromWorkload(std::make_shared<const ir::Workload>(*std::move(workload)));
}

target::Target TestTarget() { return *target::TargetByName("x86-avx512"); }

}  // namespace hone::feature

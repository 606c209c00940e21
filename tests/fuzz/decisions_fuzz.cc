// A blob of decisions is refused or can be read back. As the decisions of a trace it gives a
// program or an error.
#include "common/schedule/replay.h"
#include "server/store/tables.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr char kTrace[] = R"(workload matmul
input A: f32[48, 30]
input B: f32[30, 64]
output C[i: 48, j: 64] = sum(k: 30) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1, x2 = sample_perfect_tile(l0, parts=3, max_inner=16)
x3, x4 = sample_tile(l1, parts=2, max_inner=64)
x5, x6 = sample_register_tile(candidates=[4, 2, 3, 1])
l3, l4, l5 = split(l0, x0, x1, x2)
l6, l7 = split(l1, x3, x4)
x7 = sample_categorical(candidates=[1, 2, 5, 30])
l8, l9 = split(l2, 0, x7)
reorder(l3, l6, l4, l8, l5, l7)
parallel(l3)
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view bytes = fuzz::TextOf(data, size);
  const auto samples = store::DecodeSamples(bytes);
  if (samples.ok()) {
    fuzz::Require(store::EncodeSamples(*samples) == bytes, "samples keep their bytes");
  }
  const auto decisions = store::DecodeDecisions(bytes);
  if (!decisions.ok()) return 0;
  const auto again = store::DecodeDecisions(store::EncodeDecisions(*decisions));
  fuzz::Require(again.ok() && *again == *decisions, "decisions read back");
  static const auto* const file = new schedule::TraceFile(schedule::ParseTraceFile(kTrace).value());
  static const auto* const workload =
      new auto(std::make_shared<const ir::Workload>(file->workload));
  const auto program = schedule::Replay(*workload, file->parsed.trace, *decisions);
  fuzz::Require(program.ok() || absl::IsInvalidArgument(program.status()) ||
                    absl::IsFailedPrecondition(program.status()),
                "a refusal tells its kind", program.status().ToString());
  return 0;
}

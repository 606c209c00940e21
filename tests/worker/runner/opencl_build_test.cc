// A schedule for a GPU, from its trace to the measured kernel: built by the builder, with the
// reference that it makes for the host, and run on an OpenCL device of this machine.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/schedule/trace.h"
#include "common/target/opencl/targets.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/runner/opencl_modules.h"
#include "worker/builder/build.h"
#include "worker/runner/gpu_device.h"
#include "worker/runner/runner.h"

namespace hone::runner {
namespace {

using record::Outcome;

// 16 x 16 results per block of 8 x 8 threads; A is copied to shared memory, and B packed ahead of
// time.
constexpr char kTrace[] = R"(workload matmul
input A: f32[32, 24]
input B: f32[24, 48] constant
output C[i: 32, j: 48] = sum(k: 24) A[i, k] * B[k, j]
trace 1
b0 = block("C")
b1 = cache_write(b0, "local")
li, lj, lk = loops(b0)
i0, i1, i2 = split(li, 0, 8, 2)
j0, j1, j2 = split(lj, 0, 8, 2)
k0, k1 = split(lk, 0, 8)
reorder(i0, j0, k0, i1, j1, k1, i2, j2)
bind(i0, "blockIdx.y")
bind(j0, "blockIdx.x")
bind(i1, "threadIdx.y")
bind(j1, "threadIdx.x")
b2 = cache_read(b0, "B", "global")
transform_layout(b2, "k, j -> j / 16, k, j % 16")
b3 = cache_read(b0, "A", "shared")
compute_at(b3, k0)
q3, q4, q5, c0, c1 = loops(b3)
cs = fuse(c0, c1)
cs0, cs1, cs2 = split(cs, 0, 8, 8)
reorder(cs1, cs2, cs0)
bind(cs1, "threadIdx.y")
bind(cs2, "threadIdx.x")
reverse_compute_at(b1, j0)
q6, q7, w0, w1 = loops(b1)
w2, w3 = split(w0, 8, 2)
w4, w5 = split(w1, 8, 2)
reorder(w2, w4, w3, w5)
bind(w2, "threadIdx.y")
bind(w4, "threadIdx.x")
)";

TEST(OpenClBuildTest, AScheduleIsBuiltCheckedAndTimed) {
  if (const std::string why = WhyNoOpenCl(); !why.empty()) GTEST_SKIP() << why;
  const TemporaryFolder folder;
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, schedule::ParseTraceFile(kTrace));
  record::BuildRequest build = {.workload = file.workload.ToText(),
                                .space = schedule::TraceFileText(file.workload, file.parsed.trace),
                                .decisions = file.parsed.decisions,
                                .target = opencl::TargetOf("opencl")->ToText(),
                                .artifact_dir = folder.path()};
  const record::BuildResponse built = builder::Build(build);
  ASSERT_EQ(built.outcome, Outcome::kOk) << built.detail;
  EXPECT_GT(built.facts.code_bytes, 100);
  build.reference = true;
  const record::BuildResponse reference = builder::Build(build);
  ASSERT_EQ(reference.outcome, Outcome::kOk) << reference.detail;

  HONE_ASSERT_OK_AND_ASSIGN(auto device, MakeGpuDevice("opencl"));
  RunnerOptions options;
  options.device = std::move(device);
  options.lock_path = folder / "lock";
  options.deadline = [](absl::Duration) { return nullptr; };
  Runner runner(std::move(options));
  record::RunRequest request;
  request.workload = build.workload;
  request.workload_digest = file.workload.StructuralDigest().ToHex();
  request.artifact_path = folder / built.artifact_digest;
  request.reference_path = folder / reference.artifact_digest;
  request.reference_data = folder / "reference";
  request.seed = 1;
  const record::MeasureResult result = runner.Run(request);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_GT(result.latency_ns, 100);
  EXPECT_LE(result.max_error, 1);
}

}  // namespace
}  // namespace hone::runner

#include "tests/worker/compile/lower/gpu_trace.h"

#include <gtest/gtest.h>

#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "worker/compile/lower/lower.h"

namespace hone::lower {

GpuTrace LowerTrace(absl::string_view text, int shuffle_width) {
  auto file = schedule::ParseTraceFile(text);
  EXPECT_THAT(file, IsOk());
  auto workload = std::make_shared<const ir::Workload>(file->workload);
  const auto program = schedule::Replay(workload, file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  target::Target target = *target::TargetByName("generic/opencl");
  target.gpu.sub_group = shuffle_width;
  if (shuffle_width > 1) target.features = {"shuffle"};
  return {workload, Lower(*program, target)};
}

}  // namespace hone::lower

#include "tests/common/lower/gpu_trace.h"

#include <gtest/gtest.h>

#include "common/lower/lower.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::lower {

GpuTrace LowerTrace(absl::string_view text) {
  auto file = schedule::ParseTraceFile(text);
  EXPECT_TRUE(file.ok()) << file.status();
  auto workload = std::make_shared<const ir::Workload>(file->workload);
  const auto program = schedule::Replay(workload, file->parsed.trace, file->parsed.decisions);
  EXPECT_TRUE(program.ok()) << program.status();
  return {workload, Lower(*program, *target::TargetByName("generic/opencl"))};
}

}  // namespace hone::lower

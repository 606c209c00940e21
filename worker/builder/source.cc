#include "worker/builder/source.h"

#include <utility>

#include "common/schedule/replay.h"

namespace hone::builder {

absl::StatusOr<Source> ReplayFile(schedule::TraceFile file, absl::Span<const int64_t> decisions) {
  const auto workload = std::make_shared<const ir::Workload>(std::move(file.workload));
  const schedule::Trace& trace = file.parsed.trace;
  absl::StatusOr<ir::Program> program = schedule::Replay(workload, trace, decisions);
  if (!program.ok()) return absl::InvalidArgumentError(program.status().message());
  return Source{workload, *std::move(program),
                schedule::TraceFileText(*workload, trace, decisions)};
}

}  // namespace hone::builder

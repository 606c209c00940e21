#ifndef HONE_COMMON_SCHEDULE_SNAPSHOT_H_
#define HONE_COMMON_SCHEDULE_SNAPSHOT_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// The program after the instructions before a trace's first sampling. It is the same for every
// decision vector. Rewriting a workload takes ten times as long as scheduling it, and a search
// replays the same few traces repeatedly.
struct Snapshot {
  std::shared_ptr<const ir::Workload> workload;
  std::vector<Instruction> instructions;
  ir::Program program;
  std::vector<ir::NodeId> blocks, loops;  // indexed by register
};

// The instructions before the first sampling of a trace that begins with a rewrite. Empty for other
// traces, because their first instructions are fast.
absl::Span<const Instruction> SharedStart(const Trace& trace);

// The snapshot for exactly this workload object and these instructions if this thread still has it,
// else nullptr. Valid until the next KeepSnapshot.
const Snapshot* FindSnapshot(const ir::Workload* workload,
                             absl::Span<const Instruction> instructions);
void KeepSnapshot(Snapshot snapshot);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_SNAPSHOT_H_

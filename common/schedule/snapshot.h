#ifndef HONE_COMMON_SCHEDULE_SNAPSHOT_H_
#define HONE_COMMON_SCHEDULE_SNAPSHOT_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// What the instructions before a trace's first sampling make of a workload: the same for every
// decision vector. A rewritten workload takes ten times as long to be made as to be scheduled, and
// a search replays the same few traces again and again.
struct Snapshot {
  std::shared_ptr<const ir::Workload> workload;
  std::vector<Instruction> instructions;
  ir::Program program;
  std::vector<ir::NodeId> blocks, loops;  // by register
};

// The instructions before the first sampling of a trace that begins with a rewrite; of others none,
// since these are quick.
absl::Span<const Instruction> SharedStart(const Trace& trace);

// The snapshot of just this workload object and these instructions, if it is among the last few
// that this thread kept; else nullptr. Stays until the next KeepSnapshot.
const Snapshot* FindSnapshot(const ir::Workload* workload,
                             absl::Span<const Instruction> instructions);
void KeepSnapshot(Snapshot snapshot);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_SNAPSHOT_H_

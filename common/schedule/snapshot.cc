#include "common/schedule/snapshot.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"

namespace hone::schedule {
namespace {

// A task has about this many design spaces that begin with a rewrite.
constexpr size_t kKept = 8;

std::deque<Snapshot>& Kept() {
  thread_local std::deque<Snapshot> kept;
  return kept;
}

}  // namespace

absl::Span<const Instruction> SharedStart(const Trace& trace) {
  const std::vector<Instruction>& all = trace.instructions;
  if (all.empty() || all[0].primitive->apply != ApplyRewrite) return {};
  const auto sampling = std::find_if(all.begin(), all.end(), [](const Instruction& instruction) {
    return instruction.primitive->samples;
  });
  return absl::MakeConstSpan(all).first(sampling - all.begin());
}

const Snapshot* FindSnapshot(const ir::Workload* workload,
                             absl::Span<const Instruction> instructions) {
  for (const Snapshot& snapshot : Kept()) {
    if (snapshot.workload.get() == workload && instructions == snapshot.instructions)
      return &snapshot;
  }
  return nullptr;
}

void KeepSnapshot(Snapshot snapshot) {
  std::deque<Snapshot>& kept = Kept();
  if (kept.size() == kKept) kept.pop_front();
  kept.push_back(std::move(snapshot));
}

}  // namespace hone::schedule

#ifndef HONE_COMMON_SCHEDULE_NAMED_CALL_H_
#define HONE_COMMON_SCHEDULE_NAMED_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// An instruction as people read it: with the names that blocks and loops have when it is applied
// instead of registers, which are numbered anew whenever an instruction is added.
struct NamedCall {
  // "split(i, *, *)". Decisions are *. For a sampling, the first instruction that uses its result,
  // where * marks its own decisions and _ those of other samplings: "register_tile(C, i, j, k, *,
  // *, 16, _)".
  std::string text;
  bool samples = false;
  std::vector<int64_t> values;  // of a sampling
  int begin = 0;                // position of these in the decision vector
};

// Returns the instructions of a trace in order, without those that only look up blocks and loops.
// Errors are those of Replay.
absl::StatusOr<std::vector<NamedCall>> NamedCallsOf(std::shared_ptr<const ir::Workload> workload,
                                                    const Trace& trace,
                                                    absl::Span<const int64_t> decisions);

// A sampling at which two decision vectors differ.
struct ChangedDecision {
  std::string text;  // NamedCall::text
  std::vector<int64_t> before, after;
};
// Returns the samplings of one trace at which `other` differs from the decisions of `calls`, at
// most `most` + 1. REQUIRES: `other` has as many decisions.
std::vector<ChangedDecision> ChangedDecisions(absl::Span<const NamedCall> calls,
                                              absl::Span<const int64_t> other, size_t most);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_NAMED_CALL_H_

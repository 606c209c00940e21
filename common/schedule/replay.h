#ifndef HONE_COMMON_SCHEDULE_REPLAY_H_
#define HONE_COMMON_SCHEDULE_REPLAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// A sampling instruction reached during a replay, with its legal values.
struct Site {
  enum class Kind : uint8_t { kPerfectTile, kTile, kChoice };
  Kind kind = Kind::kChoice;
  int begin = 0;  // position in the decision vector
  int count = 1;  // number of decisions
  // kPerfectTile: factors whose product is `extent`. kTile: factors of which the first is ⌈extent /
  // product of the others⌉. In both, the last factor is at most max_inner.
  int64_t extent = 1;
  int32_t derivation = -1;  // derivation of the extent from decisions (ir::Extent)
  int64_t max_inner = 0;    // 0: no limit
  // kChoice: the candidates, as rows of `count` numbers.
  std::vector<int64_t> rows;

  int64_t RowCount() const { return static_cast<int64_t>(rows.size()) / count; }
  // Returns the first row with these values, or RowCount() if no row has them.
  int64_t RowOf(absl::Span<const int64_t> values) const;
  bool IsLegal(absl::Span<const int64_t> values) const;
  // Draws legal values: a choice uniformly, and the factors of a tile one after the other,
  // uniformly from the divisors (kPerfectTile) or about log-uniformly from the sizes (kTile).
  void Sample(Rng& rng, absl::Span<int64_t> values) const;
};

// Makes the decisions of one replay.
class Decider {
 public:
  virtual ~Decider() = default;
  // Writes site.count numbers, which are then checked.
  virtual absl::Status Decide(const Site& site, absl::Span<int64_t> values) = 0;
};

// Makes all decisions at random.
class RandomDecider final : public Decider {
 public:
  explicit RandomDecider(Rng& rng) : rng_(rng) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    site.Sample(rng_, values);
    return absl::OkStatus();
  }

 private:
  Rng& rng_;
};

// Takes the decisions from a given vector.
class GivenDecider final : public Decider {
 public:
  explicit GivenDecider(absl::Span<const int64_t> decisions) : decisions_(decisions) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    std::copy_n(decisions_.begin() + site.begin, site.count, values.begin());
    return absl::OkStatus();
  }

 private:
  absl::Span<const int64_t> decisions_;
};

struct Replayed {
  ir::Program program;
  std::vector<int64_t> decisions;
  std::vector<Site> sites;
};

// Applies a trace to a workload with the given decisions. The result is the same on every machine.
// InvalidArgument: a decision vector of the wrong length, or an illegal value at a site.
// FailedPrecondition: a primitive is illegal; the message names the instruction and prints the
// program with the loop marked.
absl::StatusOr<ir::Program> Replay(std::shared_ptr<const ir::Workload> workload, const Trace& trace,
                                   absl::Span<const int64_t> decisions);
// Receives the position of a vector and what Replay returns: an error, or the program, which is
// valid during the call.
using ReplayedTogether =
    absl::FunctionRef<void(size_t, const absl::Status&, const ir::Program& program)>;
// Replays several decision vectors of the right length, which are sorted. Instructions before the
// first decision that differs are applied once. Calls `done` for each, in order.
void ReplayAll(std::shared_ptr<const ir::Workload> workload, const Trace& trace,
               absl::Span<const absl::Span<const int64_t>> sorted, ReplayedTogether done);
// Replays one vector with the decisions of a decider, and also returns the sites.
absl::StatusOr<Replayed> ReplayWith(std::shared_ptr<const ir::Workload> workload,
                                    const Trace& trace, Decider& decider);

// A replay that has applied the first instructions of a trace. A copy can be continued with the
// rest of a longer trace that begins with the same instructions.
struct PartialReplay {
  std::shared_ptr<const ir::Workload> workload;
  Replayed replayed;
  std::vector<ir::NodeId> blocks, loops;  // by register
  std::vector<ir::Extent> ints;
  size_t instructions = 0;  // how many were applied
};
// Starts a replay without applying an instruction.
PartialReplay StartReplay(std::shared_ptr<const ir::Workload> workload);
// Applies the instructions that follow, up to the one at position `end`. The result is that of one
// replay of the whole trace with the same draws. After an error, `partial` must be discarded.
absl::Status ContinueReplay(const Trace& trace, Decider& decider, PartialReplay& partial,
                            size_t end = std::numeric_limits<size_t>::max());

// One application of a primitive, passed to its apply function.
class Call {
 public:
  ir::Program& program() { return *program_; }
  int operands() const { return static_cast<int>(instruction_->operands.size()); }
  // InvalidArgument: the operand is missing or of another kind. FailedPrecondition: the node no
  // longer exists.
  absl::StatusOr<ir::NodeId> Block(int operand) const;
  absl::StatusOr<ir::NodeId> Loop(int operand) const;
  // A block or a loop, as the registry says of the operand.
  absl::StatusOr<ir::NodeId> NodeOf(int operand) const;
  // Whether the operand is a sampled loop and the decision was to leave the block where it is.
  bool Stays(int operand) const;
  absl::StatusOr<ir::Extent> Int(int operand) const;
  // Returns an operand that is a position or a count as an int. InvalidArgument: it is not a number
  // from `low` to `high`.
  absl::StatusOr<int> IntBetween(int operand, int low, int high) const;
  absl::StatusOr<std::string> Text(int operand) const;
  // The numbers of an attribute, or `fallback` if it is absent.
  std::vector<int64_t> Numbers(absl::string_view attribute,
                               std::vector<int64_t> fallback = {}) const;
  int64_t Number(absl::string_view attribute, int64_t fallback) const;

  // Returns the results, in order.
  absl::Status Return(absl::Span<const ir::NodeId> nodes);
  // For a sampling: decides the site and returns the numbers as derived extents.
  absl::Status ReturnDecision(Site site);
  // For a sampling of a loop: the decision is a position in `loops`, or −1 to stay.
  absl::Status ReturnLocation(Site site, absl::Span<const ir::NodeId> loops);

 private:
  absl::Status Decide(Site site);

  friend absl::Status ContinueReplay(const Trace&, Decider&, PartialReplay&, size_t);
  Call(Decider& decider, PartialReplay& state)
      : program_(&state.replayed.program), decider_(&decider), state_(state) {}
  const Instruction* instruction_ = nullptr;
  ir::Program* program_ = nullptr;
  Decider* decider_ = nullptr;
  PartialReplay& state_;
};

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REPLAY_H_

#ifndef HONE_COMMON_SCHEDULE_REPLAY_H_
#define HONE_COMMON_SCHEDULE_REPLAY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// A place in a trace where decisions are taken, and what is legal there.
struct Site {
  enum class Kind : uint8_t { kPerfectTile, kTile, kChoice };
  Kind kind = Kind::kChoice;
  int begin = 0;  // in the decision vector
  int count = 1;  // numbers to decide
  // kPerfectTile: the product is `extent`, the last at most max_inner. kTile: as many parts, the
  // first is ⌈extent / product of the others⌉; the last at most max_inner.
  int64_t extent = 1;
  int32_t derivation = -1;  // how the extent follows from decisions (ir::Extent)
  int64_t max_inner = 0;    // 0: no limit
  // kChoice: one row of `count` numbers out of these.
  std::vector<int64_t> rows;

  bool IsLegal(absl::Span<const int64_t> values) const;
  // Uniform over the legal values (tiles: over the factorizations, drawn factor by factor).
  void Sample(Rng& rng, absl::Span<int64_t> values) const;
};

// Takes the decisions of one replay.
class Decider {
 public:
  virtual ~Decider() = default;
  // Writes site.count numbers; they are checked afterwards.
  virtual absl::Status Decide(const Site& site, absl::Span<int64_t> values) = 0;
};

// Draws everything at random.
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

struct Replayed {
  ir::Program program;
  std::vector<int64_t> decisions;
  std::vector<Site> sites;
};

// Applies a trace to a workload with given decisions. The same arguments give the same program, on
// every machine. InvalidArgument: the decision vector has another length, or a value is not legal
// at its site. FailedPrecondition: a primitive refuses; the message names the instruction and
// prints the program with the loop marked.
absl::StatusOr<ir::Program> Replay(std::shared_ptr<const ir::Workload> workload, const Trace& trace,
                                   absl::Span<const int64_t> decisions);
// The same with a decider; also tells the sites that it met.
absl::StatusOr<Replayed> ReplayWith(std::shared_ptr<const ir::Workload> workload,
                                    const Trace& trace, Decider& decider);

// One application of a primitive, as its apply function sees it.
class Call {
 public:
  ir::Program& program() { return *program_; }
  int operands() const { return static_cast<int>(instruction_->operands.size()); }
  // InvalidArgument: the operand is of another kind or missing; FailedPrecondition: the node is
  // gone.
  absl::StatusOr<ir::NodeId> Block(int operand) const;
  absl::StatusOr<ir::NodeId> Loop(int operand) const;
  // A block or a loop.
  absl::StatusOr<ir::NodeId> Node(int operand) const;
  // Whether the operand is a loop register whose decision was to leave the block where it is.
  bool Stays(int operand) const;
  absl::StatusOr<ir::Extent> Int(int operand) const;
  // The same as an int, of an operand that is a place or a count: nothing else may be narrowed.
  // InvalidArgument: it is not a number, or not from `low` to `high`.
  absl::StatusOr<int> IntBetween(int operand, int low, int high) const;
  absl::StatusOr<std::string> Text(int operand) const;
  // The numbers of an attribute; `fallback` when it is not given.
  std::vector<int64_t> Numbers(absl::string_view attribute,
                               std::vector<int64_t> fallback = {}) const;
  int64_t Number(absl::string_view attribute, int64_t fallback) const;

  // Results, in order.
  absl::Status Return(absl::Span<const ir::NodeId> nodes);
  // A sampling: decides the site and returns the numbers as derived extents.
  absl::Status ReturnDecision(Site site);
  // The same of a loop: the number decided is a position in `loops`, or −1: stay.
  absl::Status ReturnLocation(Site site, absl::Span<const ir::NodeId> loops);

 private:
  absl::Status Decide(Site& site);

  friend absl::StatusOr<Replayed> ReplayWith(std::shared_ptr<const ir::Workload>, const Trace&,
                                             Decider&);
  const Instruction* instruction_ = nullptr;
  ir::Program* program_ = nullptr;
  Decider* decider_ = nullptr;
  Replayed* replayed_ = nullptr;
  std::vector<ir::NodeId> blocks_, loops_;
  std::vector<ir::Extent> ints_;
};

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REPLAY_H_

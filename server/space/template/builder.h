#ifndef HONE_SERVER_SPACE_TEMPLATE_BUILDER_H_
#define HONE_SERVER_SPACE_TEMPLATE_BUILDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/schedule/trace.h"
#include "server/space/design_space.h"

namespace hone::space {

// How long a loop is: a number, a decision, or a number cut by decisions.
struct KnobExtent {
  int64_t extent = 1;
  int decision = -1;          // place in the decision vector; −1: `extent`, cut by the divisors
  std::vector<int> divisors;  // places of decisions

  int64_t Of(absl::Span<const int64_t> decisions) const;
  // Leading decisions that Of reads.
  int Reads() const;
};

struct KnobLoop {
  schedule::Operand loop;
  KnobExtent extent;
};

struct Knob {
  schedule::Operand number;
  int decision = -1;
};

// The entities of AutoTVM's configuration spaces (Chen et al., Learning to Optimize Tensor
// Programs, 2018) over the primitives of a trace: split, reorder, annotate, other, and filters over
// them. A template calls them in the order in which a schedule is written; Finish makes the design
// space. Registers count as decisions do: only the entities may sample.
class TemplateBuilder {
 public:
  // What parts a split may have.
  enum class Policy {
    kFactors,     // all factorizations of the extent
    kPowers,      // inner parts are powers of two; the outermost is what remains, rounded up
    kVerbose,     // inner parts of any size
    kCandidates,  // the innermost of two parts is one of a list
  };
  struct SplitOptions {
    int parts = 2;
    Policy policy = Policy::kFactors;
    int64_t max_innermost = 0;        // 0: no limit
    std::vector<int64_t> candidates;  // of kCandidates
  };
  // kVerbose for an extent that has few factors, else kFactors.
  static Policy PolicyFor(int64_t extent);

  // An instruction without decisions.
  std::vector<schedule::Operand> Add(absl::string_view primitive,
                                     std::vector<schedule::Operand> operands, int results = -1);
  schedule::Operand Block(const std::string& name);
  // For parts of a schedule that are written elsewhere and take no decisions.
  schedule::TraceBuilder& trace() { return trace_; }
  // The loops around a block that nothing was done to yet.
  std::vector<KnobLoop> Loops(const schedule::Operand& block, absl::Span<const int64_t> extents);

  // Parts of a loop, outermost first. REQUIRES for kPowers and kCandidates a loop of a fixed
  // extent.
  std::vector<KnobLoop> DefineSplit(const KnobLoop& loop, const SplitOptions& options);
  // Cuts off an innermost loop of a fixed extent; no decision. REQUIRES a loop of a fixed extent.
  std::pair<KnobLoop, KnobLoop> SplitOff(const KnobLoop& loop, int64_t inner);
  // One of the orders, each a permutation of 0 … loops − 1. Orders that differ only in where loops
  // of one iteration stand are one: the first of them is drawn.
  void DefineReorder(absl::Span<const KnobLoop> loops, const std::vector<std::vector<int>>& orders);
  // A number out of a list: "other".
  Knob DefineKnob(std::vector<int64_t> candidates);
  // Unrolled or not; not where it has one iteration. Counts for LimitUnrolled.
  Knob DefineUnroll(const KnobLoop& loop);
  // Unrolled whatever else is chosen.
  void Unroll(const KnobLoop& loop);
  // The loops are joined and run on threads: at least `cores` iterations, or as many as there are
  // of `all` together.
  schedule::Operand Parallel(absl::Span<const KnobLoop> loops, absl::Span<const KnobLoop> all,
                             int64_t cores);

  // Decisions are drawn so that `holds` is true of the extents of these loops.
  void AddFilter(std::string name, absl::Span<const KnobLoop> loops,
                 std::function<bool(absl::Span<const int64_t> extents)> holds);
  // Of decisions themselves, `reads` leading ones.
  void AddDecisionFilter(std::string name, int reads,
                         std::function<bool(absl::Span<const int64_t> decisions)> holds);
  // All unrolled loops together make at most that many copies of the statement. Called once, behind
  // the last DefineUnroll.
  void LimitUnrolled(int64_t statements);

  // InvalidArgument: no decisions were found for which it replays.
  absl::StatusOr<std::unique_ptr<DesignSpace>> Finish(
      std::string name, std::shared_ptr<const ir::Workload> workload) &&;

 private:
  struct Unrolled {
    KnobExtent extent;
    int decision = -1;  // whether it is; −1: always
  };
  Knob Sample(std::vector<int64_t> candidates);

  schedule::TraceBuilder trace_;
  std::vector<Constraint> constraints_;
  std::vector<Unrolled> unrolled_;
};

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TEMPLATE_BUILDER_H_

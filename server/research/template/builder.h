#ifndef HONE_SERVER_RESEARCH_TEMPLATE_BUILDER_H_
#define HONE_SERVER_RESEARCH_TEMPLATE_BUILDER_H_

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
#include "server/tuner/space/design_space.h"

namespace hone::space {

// The extent of a loop: a number or a decision.
struct KnobExtent {
  int64_t extent = 1;
  int decision = -1;  // position in the decision vector; −1: `extent`

  int64_t Of(absl::Span<const int64_t> decisions) const {
    return decision < 0 ? extent : decisions[decision];
  }
  // Number of leading decisions that Of reads.
  int Reads() const { return decision + 1; }
};

struct KnobLoop {
  schedule::Operand loop;
  KnobExtent extent;
};

// The entities of AutoTVM's configuration spaces (Chen et al., Learning to Optimize Tensor
// Programs, 2018) on top of trace primitives: split, reorder, annotate, and filters. A template
// calls them in schedule order; Finish returns the design space. Register numbers equal decision
// positions, so only the entities may sample.
class TemplateBuilder {
 public:
  // Adds an instruction without decisions.
  std::vector<schedule::Operand> Add(absl::string_view primitive,
                                     std::vector<schedule::Operand> operands, int results = -1);
  schedule::Operand Block(const std::string& name);
  // For other code that writes parts of a schedule without decisions.
  schedule::TraceBuilder& trace() { return trace_; }
  // Returns the loops around a block that has not been scheduled yet.
  std::vector<KnobLoop> Loops(const schedule::Operand& block, absl::Span<const int64_t> extents);

  // Splits a loop by factors of its extent, or into parts of any size if it has few factors and
  // more than `short_extent` iterations. Returns the parts, outermost first. `max_innermost`: 0: no
  // limit.
  static constexpr int64_t kShort = 4;
  std::vector<KnobLoop> DefineSplit(const KnobLoop& loop, int64_t max_innermost = 0, int parts = 2,
                                    int64_t short_extent = kShort);
  // Splits off an innermost loop of a fixed size, without a decision. REQUIRES: the loop has a
  // fixed extent.
  std::pair<KnobLoop, KnobLoop> SplitOff(const KnobLoop& loop, int64_t inner);
  // Chooses one of the orders, each a permutation of 0 … loops − 1. Orders that differ only in the
  // positions of single-iteration loops are equal; only the first of them is drawn.
  void DefineReorder(absl::Span<const KnobLoop> loops, const std::vector<std::vector<int>>& orders);
  // Decides whether to unroll; does not unroll a loop of one iteration. Counts for LimitUnrolled.
  void DefineUnroll(const KnobLoop& loop);
  // Decides how many of the loops are unrolled, from the innermost one on, as AutoTVM's
  // auto_unroll_max_step does. `loops`: outermost first. Counts for LimitUnrolled.
  void DefineUnrollDepth(absl::Span<const KnobLoop> loops);
  // Always unrolls.
  void Unroll(const KnobLoop& loop);
  // Interleaves the iterations in every thread (bind, "vthread"). Counts for LimitUnrolled.
  void VirtualThreads(const KnobLoop& loop);
  // Fuses the loops and runs them in parallel, with at least `cores` iterations, or as many as
  // `all` loops have together.
  schedule::Operand Parallel(absl::Span<const KnobLoop> loops, absl::Span<const KnobLoop> all,
                             int64_t cores);

  // Restricts sampling to decisions for which `holds` is true of the extents of these loops.
  void AddFilter(std::string name, absl::Span<const KnobLoop> loops,
                 std::function<bool(absl::Span<const int64_t> extents)> holds);
  // The same for the first `reads` decisions themselves.
  void AddDecisionFilter(std::string name, int reads,
                         std::function<bool(absl::Span<const int64_t> decisions)> holds);
  // Limits the copies of the statement made by all unrolled loops together. Call it once, after the
  // last DefineUnroll.
  void LimitUnrolled(int64_t statements);

  // InvalidArgument: found no decisions for which the trace replays.
  absl::StatusOr<std::unique_ptr<DesignSpace>> Finish(
      std::string name, std::shared_ptr<const ir::Workload> workload) &&;

 private:
  struct Unrolled {
    KnobExtent extent;
    int decision = -1;  // decides whether the loop is unrolled; −1: always
  };
  schedule::Operand Sample(std::vector<int64_t> candidates);

  schedule::TraceBuilder trace_;
  std::vector<Constraint> constraints_;
  std::vector<Unrolled> unrolled_;
};

}  // namespace hone::space

#endif  // HONE_SERVER_RESEARCH_TEMPLATE_BUILDER_H_

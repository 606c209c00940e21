#ifndef HONE_SERVER_TUNER_SPACE_RULE_H_
#define HONE_SERVER_TUNER_SPACE_RULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

// The loops and numbers of a tiled contraction, as trace registers.
struct Tiling {
  Contraction contraction;
  schedule::Operand rows, vectors;  // sizes of the register tile
  schedule::Operand k_unroll;       // number of micro-kernel steps in its unrolled body
  int64_t lanes = 1;
  bool joined_rows = false;  // the row loop spans several axes, so a tile is not a box
  schedule::Operand outer;   // the fused outer tile loops
  // The tile loop of the reduction, inside `outer`. The result is complete only after this loop.
  std::optional<schedule::Operand> reduce_outer;
  schedule::Operand inner;  // the innermost loop around all reductions, if those are not tiled
  int loops_to_inner = 1;   // number of loops around the body of `inner`
};

// A block of the workload in the current state of a sketch.
struct Nest {
  enum class State {
    kOpen,   // in its own nest, not scheduled yet
    kTiled,  // in its own nest, with `tiling`
    kFused,  // moved into another nest; `loops` loops are above it, and its own loops are serial
    kDone,   // completely scheduled
  };
  std::string name;  // of the block
  schedule::Operand block;
  State state = State::kOpen;
  int loops = 0;
  int64_t lanes = 1;  // of kFused
  std::optional<Tiling> tiling;
  int component = 0;  // of its stage (StageComponents); not set by rules
};

// A sketch's choices for one component of the workload (StageComponents).
struct ComponentChoices {
  std::vector<int> taken;  // index of each alternative taken
  int minor = 0;           // number of them that seldom matter
  friend auto operator<=>(const ComponentChoices&, const ComponentChoices&) = default;
};

// A program of a sketch with random decisions, and what continues its replay.
struct SketchReplay {
  schedule::PartialReplay partial;
  uint64_t attempt = 0;  // number of the draw
  Rng rng;
};

// A design space under construction, with the results of the rules applied so far.
struct Sketch {
  schedule::TraceBuilder trace;
  // The last replay by RuleContext::ProgramOf, also of a sketch that this one was copied from. Most
  // rules leave most sketches unchanged, and a trace only grows.
  mutable std::shared_ptr<const SketchReplay> replay;
  std::vector<std::string> name;  // parts of the space's name
  std::vector<Nest> nests;        // the workload's stages, in order, then blocks that rules add
  std::vector<Constraint> constraints;
  // Number of alternatives taken so far for the current component that seldom matter. A sketch with
  // more than one of them per component is dropped.
  int minor = 0;
  std::vector<ComponentChoices> components;  // set by GenerateDesignSpaces, not by rules

  // The nest of a block. REQUIRES: it is in `nests`.
  Nest& NestOf(absl::string_view block);
};

struct RuleContext {
  std::shared_ptr<const ir::Workload> workload;
  const target::Target* target = nullptr;

  // Returns the program of a sketch with randomly drawn decisions. Never null.
  absl::StatusOr<std::shared_ptr<const ir::Program>> ProgramOf(const Sketch& sketch) const;
};

// The targets that a rule or a template serves.
enum class Serves : uint8_t { kCpus, kGpus, kAll };
inline bool DoesServe(Serves serves, const target::Target& target) {
  const Serves kind = target.kind == target::Kind::kCpu ? Serves::kCpus : Serves::kGpus;
  return serves == Serves::kAll || serves == kind;
}

// A rule looks at one block of a sketch and returns the sketches that replace it. These include the
// unchanged sketch if leaving the block alone is a choice. An empty result means that the rule does
// not apply. Stateless and deterministic.
struct Rule {
  absl::string_view name;
  std::vector<Sketch> (*apply)(const RuleContext& context, const Sketch& sketch, int nest);
  absl::string_view meaning;
  bool last_first = false;  // apply to the last block first, for groups that grow from their end
  Serves serves = Serves::kCpus;

  bool Fits(const target::Target& target) const { return DoesServe(serves, target); }
};

// All rules in the order of application; each is applied to all blocks. To add one, add a file in
// rule/ and a line in rules.cc, or call RegisterRule from outside of this folder.
absl::Span<const Rule> Rules();

// Adds a rule right before the rule named `before`. The last rule is parallel_vectorize_unroll for
// CPUs and gpu_auto_bind for GPUs; a rule after it would have no effect. Register all rules at
// startup, because the rules must not change afterwards. FailedPrecondition: Rules() or a
// generation has already run. AlreadyExists: the name is taken. NotFound: no rule is named
// `before`. InvalidArgument: the name or function is missing. Thread-safe.
absl::Status RegisterRule(const Rule& rule, absl::string_view before = "parallel_vectorize_unroll");

// Operands for a trace.
inline schedule::Operand Literal(int64_t number) { return schedule::Number(number); }
// Returns a sampled number's position in the decision vector. Only samplings produce numbers, so
// register numbers equal decision positions.
inline int DecisionOf(const schedule::Operand& number) { return number.reg; }

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_RULE_H_

#ifndef HONE_SERVER_SPACE_RULE_H_
#define HONE_SERVER_SPACE_RULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/space/contraction.h"
#include "server/space/design_space.h"
#include "server/space/tile_limits.h"

namespace hone::space {

// The loops and numbers of a tiled contraction, as registers of the trace.
struct Tiling {
  Contraction contraction;
  schedule::Operand rows, vectors;  // numbers of the register tile
  schedule::Operand k_unroll;       // number: steps of the micro-kernel in its unrolled body
  int64_t lanes = 1;
  bool joined_rows = false;  // the rows' loop goes through several axes, so that a tile is no box
  schedule::Operand outer;   // the fused outer tile loops
  std::optional<schedule::Operand>
      reduce_outer;  // tiles of the reduction, inside `outer`; the result is complete outside
  schedule::Operand inner;  // the innermost loop around all reductions, when those are not tiled
  int loops_to_inner = 1;   // loops above the content of `inner`
};

// A block of the workload as a sketch leaves it so far.
struct Nest {
  enum class State {
    kOpen,   // in its own nest, untouched
    kTiled,  // in its own nest, with `tiling`
    kFused,  // moved into another nest; its loops are serial, `loops` of them above it
    kDone,   // nothing is left to do
  };
  std::string name;  // of the block
  schedule::Operand block;
  State state = State::kOpen;
  int loops = 0;
  int64_t lanes = 1;  // of kFused
  std::optional<Tiling> tiling;
  int component = 0;  // of its stage, see StageComponents; rules leave it alone
};

// What a sketch says of one component of the workload (StageComponents).
struct ComponentChoices {
  std::vector<int> taken;  // the place of each alternative that was taken
  int minor = 0;           // of them, those that seldom matter
  friend auto operator<=>(const ComponentChoices&, const ComponentChoices&) = default;
};

// A design space in the making: what the rules applied so far have written.
struct Sketch {
  schedule::TraceBuilder trace;
  std::vector<std::string> name;  // parts
  std::vector<Nest> nests;        // the workload's stages, in order; blocks that rules add follow
  std::vector<Constraint> constraints;
  // Alternatives that seldom matter, taken so far for the component that a rule looks at. Sketches
  // with more than one in a component are dropped.
  int minor = 0;
  std::vector<ComponentChoices> components;  // kept by GenerateDesignSpaces; rules leave it alone
};

struct RuleContext {
  std::shared_ptr<const ir::Workload> workload;
  const target::Target* target = nullptr;

  // The program of a sketch, with decisions drawn at random.
  absl::StatusOr<ir::Program> ProgramOf(const Sketch& sketch) const;
};

// A rule looks at one block of a sketch and answers the sketches that replace it (the unchanged one
// among them, when leaving the block alone is a choice too); none when it has nothing to say.
// Stateless, deterministic.
struct Rule {
  absl::string_view name;
  std::vector<Sketch> (*apply)(const RuleContext& context, const Sketch& sketch, int nest);
  absl::string_view meaning;
  bool last_first = false;  // looks at the last block first, for groups that grow from their end
};

// Every rule, in the order in which they are applied, each to all blocks. To add one: a file in
// rule/ and a line in rules.cc; or RegisterRule, from outside of this folder.
absl::Span<const Rule> Rules();

// Adds a rule right before the one named `before`; the last is parallel_vectorize_unroll, which
// leaves nothing for others. Spaces are the same for the same arguments, so a process registers its
// rules first: FailedPrecondition once Rules() or a generation has run. AlreadyExists: a rule has
// this name. NotFound: none is called `before`. InvalidArgument: no name or function. Thread-safe.
absl::Status RegisterRule(const Rule& rule, absl::string_view before = "parallel_vectorize_unroll");

// Operands for a trace.
inline schedule::Operand Literal(int64_t number) { return schedule::Number(number); }
// A sampled number's place in the decision vector: only samplings give numbers, so registers count
// as decisions do.
inline int DecisionOf(const schedule::Operand& number) { return number.reg; }

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_RULE_H_

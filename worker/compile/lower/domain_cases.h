#ifndef HONE_WORKER_COMPILE_LOWER_DOMAIN_CASES_H_
#define HONE_WORKER_COMPILE_LOWER_DOMAIN_CASES_H_

#include <cstdint>
#include <vector>

#include "common/ir/cases.h"
#include "common/ir/index.h"
#include "common/ir/program.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// A condition 0 ≤ runtime + fixed < extent. The runtime part is known when the code runs. The fixed
// part has a value for each point of a tile, whose code is unrolled or vectorized.
struct TileCondition {
  ir::Index runtime;
  ir::Range fixed;   // the least and the largest value of the fixed part
  int64_t step = 1;  // divides the differences between its values
  int64_t extent = 0;
  int64_t lanes = 1;  // points that vectors have; a vector is not less code with fewer of them
  friend bool operator==(const TileCondition&, const TileCondition&) = default;
};

// The values of the runtime part, divided by the points of the tile for which the condition holds.
struct DomainCases {
  // Consecutive values, in ascending order, for which the same points are inside.
  struct Case {
    int64_t first = 0, last = 0;
    double share = 1;  // of the vectors that have points inside
    int64_t values() const { return last - first + 1; }
  };
  std::vector<Case> partial;  // some points are inside, and some are not
  bool has_interior = false;  // whether there are values for which all points are inside
  bool misses = false;        // the same for no point

  int count() const { return static_cast<int>(partial.size()) + (has_interior ? 1 : 0); }
  // Returns the size of the code for all cases, relative to the code of the interior.
  double Size() const {
    double size = has_interior ? 1 : 0;
    for (const Case& part : partial) size += part.share;
    return size;
  }
};

// Divides the values that `values` allows, and possibly some more. REQUIRES: `step`, `extent` and
// `lanes` are positive.
DomainCases CasesOf(const TileCondition& condition, const ir::IndexValues& values);

// Divides indices into a part that is known when the code runs, and a static part over the
// variables of unrolled and vectorized loops.
class StaticParts {
 public:
  // The program outlives this object. Variables that it gets later are those of runtime loops.
  explicit StaticParts(const LoweredProgram& program);

  struct Parts {
    ir::Index runtime, fixed;
    bool mixed = false;  // a floordiv or mod mixes both parts
  };
  Parts Of(const ir::Index& index) const;
  TileCondition Of(const ir::Condition& condition) const;

  bool IsStatic(ir::AtomId var) const;
  // Whether the variable belongs to a loop that is neither unrolled nor vectorized.
  bool IsRuntime(ir::AtomId var) const { return KindOf(var) == Kind::kRuntime; }
  bool HasRuntimePart(const ir::Index& index) const { return !Of(index).runtime.IsConstant(); }
  // Returns the number of lanes if the index differs between them, otherwise 1.
  int64_t LanesOf(const ir::Index& index) const;

  // Returns about how many stores the code of a statement has, with those of unrolled loops counted
  // each time, and those that conditions exclude left out.
  double StoresIn(StmtId stmt) const;

 private:
  enum class Kind : uint8_t { kUnknown, kUnrolled, kLane, kRuntime };
  Kind KindOf(ir::AtomId var) const;

  const LoweredProgram& p_;
  std::vector<Kind> kind_;  // by variable
};

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_DOMAIN_CASES_H_

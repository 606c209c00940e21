#ifndef HONE_WORKER_COMPILE_LOWER_STATIC_PARTS_H_
#define HONE_WORKER_COMPILE_LOWER_STATIC_PARTS_H_

#include <cstdint>
#include <vector>

#include "common/ir/index.h"
#include "common/ir/program.h"
#include "worker/compile/lower/domain_cases.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

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

#endif  // HONE_WORKER_COMPILE_LOWER_STATIC_PARTS_H_

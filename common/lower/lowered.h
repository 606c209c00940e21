#ifndef HONE_COMMON_LOWER_LOWERED_H_
#define HONE_COMMON_LOWER_LOWERED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/program.h"

namespace hone::lower {

using StmtId = int32_t;
inline constexpr StmtId kNoStmt = -1;

// A statement of a lowered program.
struct Stmt {
  enum class Kind : uint8_t { kSeq, kFor, kIf, kStore };
  Kind kind = Kind::kSeq;
  std::vector<StmtId> children;  // kSeq: all; kFor: the body; kIf: then, and else if there is one

  // kFor: var runs over [max(0, begins…), min(extent, ends…)). Static loops (unrolled, vectorized)
  // have no begins and ends.
  ir::LoopKind loop = ir::LoopKind::kSerial;
  ir::AtomId var = ir::kNoAtom;
  int64_t extent = 1;
  std::vector<ir::Index> begins, ends;

  ir::Annotations annotations;  // kFor, kStore: of the loop or block that it came from

  ir::Condition condition;  // kIf

  // kStore: where every condition holds, outputs[c][indices] = reducer(outputs[c][indices],
  // values[c]).
  std::vector<ir::BufferId> outputs;
  ir::IndexList indices;  // after flattening one index: the element's offset
  std::vector<ir::ExprId> values;
  ir::Reducer reducer = ir::Reducer::kNone;
  std::vector<ir::Condition>
      conditions;                     // what narrowing could not discharge; predicates of the place
  std::vector<ir::Condition> guards;  // the same, of the reduction's domain
  std::vector<ir::AtomId> reduce_vars;  // loop variables that the store reduces over
  std::vector<ir::Condition>
      first;  // all hold at the first step of the reduction: each binding is 0
  // Of a store that an instruction computes (annotation kIntrinsic): loop variables of the nest
  // that are no loops any more. The instruction runs through them; elsewhere they stand for 0.
  std::vector<ir::AtomId> tensor_vars;
  bool has_init = false;  // the neutral element is stored when every reduction variable is 0; gone
                          // after LowerInits
};

// Where a buffer of the lowered program lies.
struct Storage {
  enum class Kind : uint8_t {
    kArgument,   // buffers[position]
    kPacked,     // packed constants at offset_bytes
    kWorkspace,  // workspace at offset_bytes, shared by the threads
    kThread,     // workspace at offset_bytes + thread · thread_stride_bytes
    kStack,      // a stack slot of the parallel body (or of the kernel)
    kRegister,   // vector registers: every access is at indices that are known when the code is
                 // unrolled
    kUnused,
  };
  Kind kind = Kind::kUnused;
  int position = 0;
  int64_t offset_bytes = 0;
  int64_t elements = 0;
};

struct LoweredKernel {
  std::string name;
  StmtId body = kNoStmt;
};

// What backends generate code from: loops with runtime bounds, conditions and stores to flat
// memory.
struct LoweredProgram {
  ir::AtomTable atoms;
  ir::ExprPool pool;
  std::vector<ir::Buffer> buffers;
  std::vector<Storage> storage;  // per buffer
  std::vector<Stmt> stmts;
  std::vector<LoweredKernel> kernels;  // "prepack" first, if there is one; then "main"
  int arguments = 0;                   // workload inputs, then outputs
  int threads = 1;  // the most that a parallel loop uses; each loop has its number as an annotation
  int64_t packed_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t thread_offset_bytes = 0;  // where the per-thread parts begin
  int64_t thread_stride_bytes = 0;

  StmtId Add(Stmt stmt) {
    stmts.push_back(std::move(stmt));
    return static_cast<StmtId>(stmts.size()) - 1;
  }
  static bool IsStatic(ir::LoopKind kind) {
    return kind == ir::LoopKind::kUnrolled || kind == ir::LoopKind::kVectorized;
  }

  // Readable text.
  std::string ToText() const;
};

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_LOWERED_H_

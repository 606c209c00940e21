#ifndef HONE_WORKER_COMPILE_LOWER_LOWERED_H_
#define HONE_WORKER_COMPILE_LOWER_LOWERED_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::lower {

using StmtId = int32_t;
inline constexpr StmtId kNoStmt = -1;  // does nothing

// A statement of a lowered program.
struct Stmt {
  // kBarrier: the threads of a block wait for each other and see what the others have written.
  // Every thread of the block reaches it the same number of times: loops and branches around it do
  // not depend on the thread.
  // kCommitCopies: each thread ends a group of its asynchronous stores. kWaitForCopies: each waits
  // until at most `pending` of its groups are unfinished. All threads reach both, as for barriers.
  enum class Kind : uint8_t { kSeq, kFor, kIf, kStore, kBarrier, kCommitCopies, kWaitForCopies };
  Kind kind = Kind::kSeq;
  std::vector<StmtId> children;  // kSeq: all; kFor: the body; kIf: then [, else]
  // kSeq: the children are the cases of guarded values. Their conditions exclude each other, so
  // that exactly one child stores at each point.
  bool cases = false;

  // kFor: var runs over [max(0, begins…), min(extent, ends…)). Static (unrolled or vectorized)
  // loops have neither begins nor ends. Bound loops have none either; they are the outermost loops
  // of a kernel for a GPU: first the axes of blocks, then those of threads, each at most once.
  ir::LoopKind loop = ir::LoopKind::kSerial;
  ir::ThreadAxis axis = ir::ThreadAxis::kNone;  // of a bound loop
  ir::AtomId var = ir::kNoAtom;
  int64_t extent = 1;
  std::vector<ir::Index> begins, ends;

  ir::Annotations annotations;  // kFor, kStore: from the original loop or block

  ir::Condition condition;  // kIf

  // kStore: where every condition holds, outputs[c][indices] = reducer(outputs[c][indices],
  // values[c]).
  std::vector<ir::BufferId> outputs;
  ir::IndexList indices;           // after flattening, one index: the element's offset
  std::vector<ir::ExprId> values;  // after flattening, a gathered index is added to the offset
  ir::Reducer reducer = ir::Reducer::kNone;
  std::vector<ir::Condition>
      conditions;                     // those that remain after narrowing; predicates of the store
  std::vector<ir::Condition> guards;  // the same, for guards of the reduction
  std::vector<ir::AtomId> reduce_vars;  // loop variables that the store reduces over
  std::vector<ir::Condition>
      first;  // all hold at the first step of the reduction: each binding is 0
  // For a store that an instruction computes (annotation kIntrinsic): the former loop variables of
  // its nest. The instruction iterates over them; elsewhere they are 0.
  std::vector<ir::AtomId> tensor_vars;
  // A copy from global to shared memory that may remain unfinished until the wait for its group. No
  // thread may access the element before that wait.
  bool is_async = false;
  // > 0: a shuffle. Each thread copies elements as the thread of its sub-group sees them whose
  // number in the block differs from its own in these bits. All threads of a block reach it, as for
  // barriers, but it does not wait for other sub-groups and orders no accesses to memory.
  int lane_xor = 0;
  int pending = 0;  // kWaitForCopies
  // kStore to an accumulator: nothing reads the elements for which a condition without reduction
  // variables fails, so that any value may be written to them.
  bool may_leave_garbage = false;
  // Before LowerInits: the neutral element is stored when every reduction variable is 0.
  bool has_init = false;
};

// The memory of a buffer.
struct Storage {
  enum class Kind : uint8_t {
    kArgument,   // buffers[position]
    kPacked,     // packed constants at offset_bytes
    kWorkspace,  // workspace at offset_bytes, shared by the threads
    kThread,     // workspace at WorkspaceBytes(thread) + offset_bytes
    kStack,      // a stack slot of the parallel body or kernel; on GPUs, of a thread
    kRegister,   // vector registers; all indices are known once the code is unrolled
    kShared,     // shared memory of a block at offset_bytes (GPUs)
    kUnused,
  };
  Kind kind = Kind::kUnused;
  int position = 0;
  int64_t offset_bytes = 0;
  int64_t elements = 0;  // from the first to the last
  ir::Shape strides;     // kArgument: those of a slice, see layout.h; empty: dense
  // kArgument: the workload's dtype if its elements are packed. The buffer has bytes then.
  std::optional<ir::DType> packed_dtype;
};

struct LoweredKernel {
  std::string name;
  StmtId body = kNoStmt;
  // On GPUs, each kernel is one launch. `grid` and `block` are the extents of its bound loops in x,
  // y and z; 1 where there is no loop.
  bool prepack = false;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t shared_bytes = 0;  // of a block
};

// The input of code generation: loops with runtime bounds, conditions and stores to flat memory.
struct LoweredProgram {
  target::Kind kind = target::Kind::kCpu;  // of the device that it is for
  int shuffle_width = 1;                   // consecutive threads of a block that shuffles can reach
  ir::AtomTable atoms;
  ir::ExprPool pool;
  std::vector<ir::Buffer> buffers;
  std::vector<Storage> storage;  // per buffer
  std::vector<Stmt> stmts;
  // For CPUs: ir::kPrepackKernel, if there is one; then ir::kMainKernel. For GPUs, each of these
  // becomes one or more launches, which run one after the other and have distinct names.
  std::vector<LoweredKernel> kernels;
  int arguments = 0;  // workload inputs, then outputs
  int threads =
      1;  // the maximum over the parallel loops of kMainKernel; each has its own number of threads
  int64_t packed_bytes = 0;
  int64_t workspace_bytes = 0;      // shared by the threads; the threads' own parts follow
  int64_t thread_stride_bytes = 0;  // each thread's part
  // The workspace of a call that uses this many threads.
  int64_t WorkspaceBytes(int64_t used) const {
    return workspace_bytes + used * thread_stride_bytes;
  }

  StmtId Add(Stmt stmt) {
    stmts.push_back(std::move(stmt));
    return static_cast<StmtId>(stmts.size()) - 1;
  }
  // Adds a copy of a loop without children, whose variable has this suffix and is added to
  // `renamed`.
  StmtId AddCopy(StmtId loop, absl::string_view suffix,
                 std::vector<std::pair<ir::AtomId, ir::Index>>& renamed);
  // Puts a statement inside these loops, which are given from the outside. Returns the outermost.
  StmtId Nest(absl::Span<const StmtId> loops, StmtId inner);
  bool IsForGpu() const { return kind != target::Kind::kCpu; }
  // Whether the statement is or contains a barrier, a commit, a wait or a shuffle.
  bool HasBarrier(StmtId stmt) const;
  static bool IsStatic(ir::LoopKind kind) {
    return kind == ir::LoopKind::kUnrolled || kind == ir::LoopKind::kVectorized;
  }

  std::string ToText() const;
  // Prints one statement with everything inside it.
  std::string ToText(StmtId stmt) const;
};

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_LOWERED_H_

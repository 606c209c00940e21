#include "tests/oracles/verifier.h"

#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"

namespace hone::lower {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::Index;

class Verifier {
 public:
  explicit Verifier(const LoweredProgram& program)
      : p_(program), bound_by_(program.atoms.size(), kUnbound) {}

  absl::Status Run() {
    if (p_.storage.size() != p_.buffers.size()) return Broken("not every buffer has storage");
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      HONE_RETURN_IF_ERROR(CheckStorage(static_cast<BufferId>(b)));
    }
    if (p_.IsForGpu()) return CheckLaunches();
    if (p_.kernels.empty() || p_.kernels.size() > 2 || p_.kernels.back().name != ir::kMainKernel ||
        (p_.kernels.size() == 2 && p_.kernels[0].name != ir::kPrepackKernel)) {
      return Broken("the kernels are not \"main\", or \"prepack\" and \"main\"");
    }
    for (const LoweredKernel& kernel : p_.kernels) {
      prepacks_ = kernel.name == ir::kPrepackKernel;
      if (kernel.body == kNoStmt) return Broken(absl::StrCat("kernel ", kernel.name, " is empty"));
      HONE_RETURN_IF_ERROR(Check(kernel.body));
    }
    return absl::OkStatus();
  }

 private:
  enum Binding : uint8_t { kUnbound, kRuntime, kStatic, kLane, kTensor, kThread };

  absl::Status CheckLaunches() {
    if (p_.kernels.empty()) return Broken("there is no kernel");
    bool computes = false;
    for (const LoweredKernel& kernel : p_.kernels) {
      prepacks_ = kernel.prepack;
      if (prepacks_ && computes) return Broken("constants are packed after they are used");
      computes |= !prepacks_;
      if (kernel.body == kNoStmt) return Broken(absl::StrCat("kernel ", kernel.name, " is empty"));
      shared_bytes_ = kernel.shared_bytes;
      threads_x_ = kernel.block[0];
      HONE_RETURN_IF_ERROR(CheckBound(kernel.body, -1));
    }
    return absl::OkStatus();
  }

  // Checks the loops that are bound to axes, which come first, and their bodies. `outer` is the
  // dimension of the enclosing axis, plus 3 for an axis of threads.
  absl::Status CheckBound(StmtId id, int outer) {
    const Stmt& loop = p_.stmts[id];
    if (loop.kind != Stmt::Kind::kFor || loop.loop != ir::LoopKind::kBound) return Check(id);
    const bool thread = loop.axis >= ir::ThreadAxis::kThreadX;
    if (loop.axis == ir::ThreadAxis::kNone || loop.axis == ir::ThreadAxis::kVThread) {
      return Broken(id, "a bound loop has an axis of blocks or threads");
    }
    if (!thread && outer >= 3) return Broken(id, "a loop over blocks is inside one over threads");
    if (!loop.begins.empty() || !loop.ends.empty()) return Broken(id, "a bound loop has no bounds");
    if (loop.children.size() != 1) return Broken(id, "a loop has one body");
    if (loop.var < 0 || bound_by_[loop.var] != kUnbound) {
      return Broken(id, "the variable belongs to another loop");
    }
    if (!axes_.insert(loop.axis).second) return Broken(id, "an axis occurs twice");
    bound_by_[loop.var] = thread ? kThread : kRuntime;
    HONE_RETURN_IF_ERROR(CheckBound(loop.children[0], thread ? 3 : 0));
    bound_by_[loop.var] = kUnbound;
    axes_.erase(loop.axis);
    return absl::OkStatus();
  }

  // Checks that the control flow around barriers is the same for all threads.
  absl::Status CheckUniform(StmtId id, const Index& index) const {
    bool differs = false;
    p_.atoms.VisitVars(index, [&](AtomId var) { differs |= bound_by_[var] == kThread; });
    if (!differs) return absl::OkStatus();
    return Broken(id, "only some threads of a block reach a barrier or shuffle");
  }

  static absl::Status Broken(absl::string_view rule) {
    return absl::InternalError(absl::StrCat("lowered program: ", rule));
  }
  absl::Status Broken(StmtId id, absl::string_view rule) const {
    return Broken(absl::StrCat(rule, "\n", p_.ToText(id)));
  }

  absl::Status CheckStorage(BufferId id) const {
    const ir::Buffer& buffer = p_.buffers[id];
    const Storage& storage = p_.storage[id];
    const auto within = [&](int64_t bytes) {
      const int64_t end = storage.offset_bytes + storage.elements * ir::DTypeBytes(buffer.dtype);
      if (storage.offset_bytes % target::kBufferAlignment == 0 && storage.offset_bytes >= 0 &&
          end <= bytes) {
        return absl::OkStatus();
      }
      return Broken(absl::StrCat("buffer ", buffer.name, " does not lie within its memory"));
    };
    switch (storage.kind) {
      case Storage::Kind::kArgument:
        if (storage.position >= 0 && storage.position < p_.arguments) return absl::OkStatus();
        return Broken(absl::StrCat("buffer ", buffer.name, " is not an argument"));
      case Storage::Kind::kPacked:
        return within(p_.packed_bytes);
      case Storage::Kind::kWorkspace:
        return within(p_.workspace_bytes);
      case Storage::Kind::kThread:
        return within(p_.thread_stride_bytes);
      case Storage::Kind::kShared:
        // CheckAccess compares with the size of the kernel's shared memory.
        return p_.IsForGpu() ? within(INT64_MAX) : Broken("a CPU has no shared memory");
      case Storage::Kind::kStack:
      case Storage::Kind::kRegister:
      case Storage::Kind::kUnused:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status Check(StmtId id) {
    if (id == kNoStmt) return absl::OkStatus();
    const Stmt& stmt = p_.stmts[id];
    switch (stmt.kind) {
      case Stmt::Kind::kSeq:
        break;
      case Stmt::Kind::kFor:
        return CheckFor(id, stmt);
      case Stmt::Kind::kIf:
        if (stmt.children.empty() || stmt.children.size() > 2) {
          return Broken(id, "a branch has one or two sides");
        }
        HONE_RETURN_IF_ERROR(CheckIndex(id, stmt.condition.index));
        if (p_.HasBarrier(id)) HONE_RETURN_IF_ERROR(CheckUniform(id, stmt.condition.index));
        break;
      case Stmt::Kind::kStore:
        return CheckStore(id, stmt);
      case Stmt::Kind::kBarrier:
      case Stmt::Kind::kCommitCopies:
      case Stmt::Kind::kWaitForCopies:
        if (!p_.IsForGpu() || in_vectorized_) return Broken(id, "a barrier between lanes");
        if (stmt.pending < 0) return Broken(id, "a wait for a negative number of groups");
        break;
    }
    for (const StmtId child : stmt.children) HONE_RETURN_IF_ERROR(Check(child));
    return absl::OkStatus();
  }

  absl::Status CheckFor(StmtId id, const Stmt& loop) {
    if (loop.children.size() != 1 || loop.children[0] == kNoStmt) {
      return Broken(id, "a loop has one body");
    }
    if (loop.extent < 1) return Broken(id, "a loop has at least one iteration");
    for (const auto* bounds : {&loop.begins, &loop.ends}) {
      if (!bounds->empty() && LoweredProgram::IsStatic(loop.loop)) {
        return Broken(id, "a static loop has no bounds");
      }
      for (const Index& bound : *bounds) {
        HONE_RETURN_IF_ERROR(CheckIndex(id, bound));
        if (p_.HasBarrier(id)) HONE_RETURN_IF_ERROR(CheckUniform(id, bound));
      }
    }
    if (loop.loop == ir::LoopKind::kBound) {
      return Broken(id, "a loop that is bound to an axis is inside other code");
    }
    const bool vectorized = loop.loop == ir::LoopKind::kVectorized;
    const bool parallel = loop.loop == ir::LoopKind::kParallel;
    if ((vectorized || parallel) && in_vectorized_) {
      return Broken(id, "a vectorized loop contains only serial and unrolled loops");
    }
    if (parallel && in_parallel_) return Broken(id, "a parallel loop is inside another one");
    if (loop.var < 0 || bound_by_[loop.var] != kUnbound) {
      return Broken(id, "the variable belongs to another loop");
    }
    bound_by_[loop.var] = vectorized                             ? kLane
                          : loop.loop == ir::LoopKind::kUnrolled ? kStatic
                                                                 : kRuntime;
    in_vectorized_ |= vectorized;
    in_parallel_ |= parallel;
    HONE_RETURN_IF_ERROR(Check(loop.children[0]));
    if (vectorized) in_vectorized_ = false;
    if (parallel) in_parallel_ = false;
    bound_by_[loop.var] = kUnbound;
    return absl::OkStatus();
  }

  absl::Status CheckIndex(StmtId id, const Index& index) const {
    AtomId unbound = ir::kNoAtom;
    p_.atoms.VisitVars(index, [&](AtomId var) {
      if (bound_by_[var] == kUnbound) unbound = var;
    });
    if (unbound == ir::kNoAtom) return absl::OkStatus();
    return Broken(id, absl::StrCat("no loop around it has the variable ", p_.atoms[unbound].name));
  }

  absl::Status CheckAccess(StmtId id, BufferId buffer, const ir::IndexList& indices) const {
    const absl::string_view name = p_.buffers[buffer].name;
    if (indices.size() != 1) return Broken(id, absl::StrCat("the index of ", name, " is not flat"));
    HONE_RETURN_IF_ERROR(CheckIndex(id, indices[0]));
    const Storage::Kind kind = p_.storage[buffer].kind;
    if (kind == Storage::Kind::kUnused) return Broken(id, absl::StrCat(name, " has no memory"));
    const int64_t end = p_.storage[buffer].offset_bytes +
                        p_.storage[buffer].elements * ir::DTypeBytes(p_.buffers[buffer].dtype);
    if (kind == Storage::Kind::kShared && end > shared_bytes_) {
      return Broken(id, absl::StrCat(name, " is not in the kernel's shared memory"));
    }
    if (kind != Storage::Kind::kRegister) return absl::OkStatus();
    bool runtime = false;
    p_.atoms.VisitVars(indices[0], [&](AtomId var) {
      runtime |= bound_by_[var] == kRuntime || bound_by_[var] == kThread;
    });
    if (!runtime) return absl::OkStatus();
    return Broken(id, absl::StrCat("the register index of ", name, " varies at run time"));
  }

  absl::Status CheckStore(StmtId id, const Stmt& store) {
    if (!store.children.empty()) return Broken(id, "a store has no children");
    for (const AtomId var : store.tensor_vars) bound_by_[var] = kTensor;
    HONE_RETURN_IF_ERROR(CheckStoreInside(id, store));
    for (const AtomId var : store.tensor_vars) bound_by_[var] = kUnbound;
    return absl::OkStatus();
  }

  absl::Status CheckStoreInside(StmtId id, const Stmt& store) const {
    if (store.has_init) return Broken(id, "a neutral element is not stored");
    if (store.outputs.empty() || store.outputs.size() != store.values.size()) {
      return Broken(id, "a store has one value for each output");
    }
    if (store.is_async) HONE_RETURN_IF_ERROR(CheckAsync(id, store));
    if (store.lane_xor != 0) HONE_RETURN_IF_ERROR(CheckShuffle(id, store));
    for (const auto* list : {&store.conditions, &store.guards}) {
      for (const ir::Condition& condition : *list) {
        HONE_RETURN_IF_ERROR(CheckIndex(id, condition.index));
      }
    }
    for (size_t c = 0; c < store.outputs.size(); ++c) {
      const BufferId output = store.outputs[c];
      const ir::Buffer& buffer = p_.buffers[output];
      const Storage::Kind kind = p_.storage[output].kind;
      HONE_RETURN_IF_ERROR(CheckAccess(id, output, store.indices));
      if (p_.pool[store.values[c]].dtype != buffer.dtype) {
        return Broken(id, absl::StrCat("the value does not have the dtype of ", buffer.name));
      }
      if (buffer.input) return Broken(id, absl::StrCat("input ", buffer.name, " is written"));
      const bool own = kind == Storage::Kind::kRegister || kind == Storage::Kind::kStack ||
                       (p_.IsForGpu() && kind == Storage::Kind::kShared);
      if (prepacks_ != (kind == Storage::Kind::kPacked) && !own) {
        return Broken(id, prepacks_ ? "\"prepack\" writes a buffer that is not packed"
                                    : "a packed constant is written outside \"prepack\"");
      }
      HONE_RETURN_IF_ERROR(CheckValue(id, store.values[c]));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAsync(StmtId id, const Stmt& store) const {
    const ir::Expr& value = p_.pool[store.values[0]];
    if (store.outputs.size() == 1 && store.reducer == ir::Reducer::kNone &&
        value.op == ir::Op::kLoad && value.gathered < 0 &&
        p_.storage[store.outputs[0]].kind == Storage::Kind::kShared &&
        (p_.buffers[value.buffer].input ||
         p_.storage[value.buffer].kind == Storage::Kind::kPacked)) {
      return absl::OkStatus();
    }
    return Broken(id, "an asynchronous store is not a copy of an input to shared memory");
  }

  absl::Status CheckShuffle(StmtId id, const Stmt& store) const {
    if (!p_.IsForGpu() || in_vectorized_) return Broken(id, "a shuffle between vector lanes");
    // The threads that exchange values are in one row of the block and in one sub-group.
    const auto lanes =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(store.lane_xor) + 1));
    if (store.lane_xor < 0 || p_.shuffle_width % lanes != 0 || threads_x_ % lanes != 0) {
      return Broken(id, "a shuffle reaches threads of another sub-group or row");
    }
    for (const auto* list : {&store.conditions, &store.guards}) {
      for (const ir::Condition& condition : *list) {
        HONE_RETURN_IF_ERROR(CheckUniform(id, condition.index));
      }
    }
    for (size_t c = 0; c < store.values.size(); ++c) {
      const ir::Expr& value = p_.pool[store.values[c]];
      if (store.reducer == ir::Reducer::kNone && value.op == ir::Op::kLoad && value.gathered < 0 &&
          p_.buffers[value.buffer].dtype == p_.buffers[store.outputs[c]].dtype) {
        continue;
      }
      return Broken(id, "a shuffle does not copy an element");
    }
    return absl::OkStatus();
  }

  absl::Status CheckValue(StmtId id, ir::ExprId value) const {
    absl::Status status;
    p_.pool.Visit(value, [&](const ir::Expr& expr) {
      if (expr.op == ir::Op::kIndex) status.Update(CheckIndex(id, p_.pool.IndicesOf(expr)[0]));
      if (expr.op == ir::Op::kWhere) status.Update(Broken(id, "a guarded value was not lowered"));
      if (expr.op != ir::Op::kLoad) return;
      status.Update(CheckAccess(id, expr.buffer, p_.pool.IndicesOf(expr)));
      const ir::Buffer& buffer = p_.buffers[expr.buffer];
      if (prepacks_ && p_.storage[expr.buffer].kind == Storage::Kind::kArgument &&
          !buffer.constant) {
        status.Update(
            Broken(id, absl::StrCat("\"prepack\" reads ", buffer.name, ", which is not constant")));
      }
    });
    return status;
  }

  const LoweredProgram& p_;
  std::vector<Binding> bound_by_;
  bool in_vectorized_ = false, in_parallel_ = false;
  bool prepacks_ = false;
  std::set<ir::ThreadAxis> axes_;  // of the enclosing bound loops
  int64_t shared_bytes_ = 0;       // of the kernel
  int64_t threads_x_ = 1;          // of a block
};

}  // namespace

absl::Status Verify(const LoweredProgram& program) { return Verifier(program).Run(); }

}  // namespace hone::lower

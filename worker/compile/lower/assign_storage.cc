#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "common/target/kernel_memory.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

using ir::BufferId;
using ir::Index;

namespace {

constexpr int64_t kMaxStackBytes = 32 << 10;       // per buffer
constexpr int64_t kMaxTotalStackBytes = 64 << 10;  // for all buffers; threads may have small stacks
constexpr int64_t kMaxMemoryBytes = int64_t{1} << 40;
constexpr int64_t kMaxBytesOfGpuThread = 16 << 10;  // for its private arrays

// Memory in which buffers that are never in use at the same time may share bytes.
class Region {
 public:
  // Returns the offset of a buffer that is in use in the steps [first, last].
  int64_t Place(int64_t bytes, int first, int last) {
    std::vector<Placed> others;
    for (const Placed& placed : placed_) {
      if (placed.first <= last && first <= placed.last) others.push_back(placed);
    }
    std::sort(others.begin(), others.end(),
              [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    int64_t begin = 0;
    for (const Placed& other : others) {
      if (begin + bytes <= other.begin) break;
      begin = std::max(begin, other.end);
    }
    placed_.push_back({first, last, begin, begin + bytes});
    bytes_ = std::max(bytes_, begin + bytes);
    return begin;
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Placed {
    int first, last;
    int64_t begin, end;
  };
  std::vector<Placed> placed_;
  int64_t bytes_ = 0;
};

class Assigner {
 public:
  explicit Assigner(LoweredProgram& program) : p_(program), uses_(program.buffers.size()) {}

  absl::Status Run(const ir::Program& source, const target::Target& target,
                   const ArgumentStrides& strides) {
    cores_ = std::max(1, target.cores);
    limits_ = target.gpu;
    p_.threads = 1;
    p_.storage.assign(p_.buffers.size(), {});
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      VisitTopLevel(p_.kernels[k].body, static_cast<int>(k));
    }
    const ir::Workload& workload = source.workload();
    int position = 0;
    for (const auto& list : {workload.Inputs(), workload.Outputs()}) {
      for (BufferId id : list)
        p_.storage[id] = {.kind = Storage::Kind::kArgument, .position = position++};
    }
    p_.arguments = position;
    HONE_RETURN_IF_ERROR(SetStrides(strides));
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      Storage& storage = p_.storage[b];
      const ir::Shape& shape = p_.buffers[b].shape;
      storage.elements = !storage.strides.empty() ? SpanOf(shape, storage.strides)
                         : shape.empty()          ? 1
                                                  : Strides(static_cast<BufferId>(b))[0] * shape[0];
      if (storage.kind != Storage::Kind::kArgument) {
        if (p_.IsForGpu()) {
          HONE_RETURN_IF_ERROR(PlaceOnGpu(static_cast<BufferId>(b)));
        } else {
          Place(static_cast<BufferId>(b));
        }
      }
      if (p_.packed_bytes > kMaxMemoryBytes || p_.workspace_bytes > kMaxMemoryBytes ||
          p_.thread_stride_bytes > kMaxMemoryBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "buffer ", p_.buffers[b].name, " makes the kernel need more than 1 TiB of memory"));
      }
    }
    if (p_.thread_stride_bytes > 0) {
      // Offsets the threads' parts within a page, so that they do not compete for the same cache
      // sets.
      p_.thread_stride_bytes =
          (p_.thread_stride_bytes + 4095) / 4096 * 4096 + 5 * target::kBufferAlignment;
    }
    for (Stmt& stmt : p_.stmts) Flatten(stmt);
    return p_.IsForGpu() ? CheckLaunches() : absl::OkStatus();
  }

 private:
  struct Uses {
    std::set<int> kernels;
    // The variable of the parallel loop around each use, or kNoAtom. If an enclosing loop was split
    // into cases, there are several copies of the parallel loop; a buffer inside them is still
    // private to each thread.
    std::set<ir::AtomId> parallels;
    // The first and the last top-level statement with a use.
    int first = std::numeric_limits<int>::max(), last = -1;
    // On GPUs: how many barriers outside of loops and branches precede the first and the last use.
    int first_barriers = std::numeric_limits<int>::max(), last_barriers = -1;
  };

  // Gives the arguments their strides.
  absl::Status SetStrides(const ArgumentStrides& strides) {
    if (strides.empty()) return absl::OkStatus();
    if (static_cast<int>(strides.size()) != p_.arguments) {
      return absl::InvalidArgumentError(
          absl::StrCat("strides of ", strides.size(), " arguments; the kernel has ", p_.arguments));
    }
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      Storage& storage = p_.storage[b];
      if (storage.kind != Storage::Kind::kArgument) continue;
      storage.strides = strides[storage.position];
      if (storage.strides.empty()) continue;
      const ir::Buffer& buffer = p_.buffers[b];
      HONE_RETURN_IF_ERROR(CheckStrides(buffer.name, buffer.dtype, buffer.shape, storage.strides));
    }
    // A store has one offset for all of its outputs.
    for (const Stmt& stmt : p_.stmts) {
      for (const BufferId output : stmt.outputs) {
        if (p_.storage[output].strides == p_.storage[stmt.outputs[0]].strides) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(p_.buffers[stmt.outputs[0]].name, " and ", p_.buffers[output].name,
                         " are outputs of one stage and must have the same strides"));
      }
    }
    return absl::OkStatus();
  }

  void Use(BufferId buffer, int kernel, ir::AtomId parallel) {
    Uses& uses = uses_[buffer];
    uses.kernels.insert(kernel);
    uses.parallels.insert(parallel);
    uses.first = std::min(uses.first, statement_);
    uses.last = std::max(uses.last, statement_);
    uses.first_barriers = std::min(uses.first_barriers, barriers_);
    uses.last_barriers = std::max(uses.last_barriers, barriers_);
  }

  void VisitTopLevel(StmtId id, int kernel) {
    if (id != kNoStmt && p_.stmts[id].kind == Stmt::Kind::kSeq) {
      for (const StmtId child : p_.stmts[id].children) VisitTopLevel(child, kernel);
      return;
    }
    ++statement_;
    VisitThread(id, kernel);
  }

  // Blocks of a launch run at the same time, so a launch is one statement; within a block, barriers
  // separate the uses of shared memory.
  void VisitThread(StmtId id, int kernel) {
    if (id == kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    const bool bound = stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kBound;
    if (stmt.kind == Stmt::Kind::kBarrier) ++barriers_;
    if (!bound && stmt.kind != Stmt::Kind::kSeq) return Visit(id, kernel, ir::kNoAtom);
    const std::vector<StmtId> children = stmt.children;
    for (const StmtId child : children) VisitThread(child, kernel);
  }

  void Visit(StmtId id, int kernel, ir::AtomId parallel) {
    if (id == kNoStmt) return;
    Stmt& stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kParallel) {
      parallel = stmt.var;
      const int64_t asked = ir::ValueOf(stmt.annotations, ir::Annotation::Key::kThreads, cores_);
      ir::Set(stmt.annotations, ir::Annotation::Key::kThreads, std::min(asked, stmt.extent));
      // Constants are packed by one thread.
      if (p_.kernels[kernel].name == ir::kMainKernel) {
        p_.threads = std::max(p_.threads, static_cast<int>(std::min(asked, stmt.extent)));
      }
    }
    for (BufferId output : stmt.outputs) Use(output, kernel, parallel);
    for (ir::ExprId value : stmt.values) {
      p_.pool.VisitLoads(value, [&](const ir::Expr& load) { Use(load.buffer, kernel, parallel); });
    }
    for (StmtId child : stmt.children) Visit(child, kernel, parallel);
  }

  void Place(BufferId id) {
    const ir::Buffer& buffer = p_.buffers[id];
    const Uses& uses = uses_[id];
    Storage& storage = p_.storage[id];
    if (uses.kernels.empty()) return;
    const int64_t bytes = target::AlignedBytes(storage.elements * ir::DTypeBytes(buffer.dtype));
    const bool packs = p_.kernels[0].name == ir::kPrepackKernel && uses.kernels.contains(0);
    const bool is_private = uses.kernels.size() == 1 && uses.parallels.size() == 1 &&
                            *uses.parallels.begin() != ir::kNoAtom;
    int64_t& stack_bytes = stack_bytes_[packs ? 1 : 0];
    const bool fits_stack = bytes <= kMaxStackBytes && stack_bytes + bytes <= kMaxTotalStackBytes;
    if (buffer.scope == ir::Scope::kFragment) {
      storage.kind = Storage::Kind::kRegister;
    } else if (is_private && fits_stack) {
      storage.kind = Storage::Kind::kStack;
      stack_bytes += bytes;
    } else if (packs) {
      // One thread packs the constants, so the iterations of a parallel loop may share memory.
      storage.kind = Storage::Kind::kPacked;
      storage.offset_bytes = p_.packed_bytes;
      p_.packed_bytes += bytes;
    } else if (is_private) {
      storage.kind = Storage::Kind::kThread;
      storage.offset_bytes = thread_.Place(bytes, uses.first, uses.last);
      p_.thread_stride_bytes = thread_.bytes();
    } else {
      storage.kind = Storage::Kind::kWorkspace;
      storage.offset_bytes = workspace_.Place(bytes, uses.first, uses.last);
      p_.workspace_bytes = workspace_.bytes();
    }
  }

  // Uses the scopes that MapThreads has chosen.
  absl::Status PlaceOnGpu(BufferId id) {
    const ir::Buffer& buffer = p_.buffers[id];
    const Uses& uses = uses_[id];
    Storage& storage = p_.storage[id];
    if (uses.kernels.empty()) return absl::OkStatus();
    const int64_t bytes = target::AlignedBytes(storage.elements * ir::DTypeBytes(buffer.dtype));
    LoweredKernel& kernel = p_.kernels[*uses.kernels.begin()];
    switch (buffer.scope) {
      case ir::Scope::kFragment:
        storage.kind = Storage::Kind::kRegister;
        return absl::OkStatus();
      case ir::Scope::kLocal:
        storage.kind = Storage::Kind::kStack;
        thread_bytes_ += bytes;
        if (thread_bytes_ <= kMaxBytesOfGpuThread) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat("the arrays of a thread, with ", buffer.name,
                                                       ", exceed ", kMaxBytesOfGpuThread,
                                                       " bytes"));
      case ir::Scope::kShared:
        storage.kind = Storage::Kind::kShared;
        shared_.resize(p_.kernels.size());
        storage.offset_bytes =
            shared_[*uses.kernels.begin()].Place(bytes, uses.first_barriers, uses.last_barriers);
        kernel.shared_bytes = shared_[*uses.kernels.begin()].bytes();
        return absl::OkStatus();
      case ir::Scope::kGlobal:
        break;
    }
    if (kernel.prepack) {
      storage.kind = Storage::Kind::kPacked;
      storage.offset_bytes = p_.packed_bytes;
      p_.packed_bytes += bytes;
    } else {
      storage.kind = Storage::Kind::kWorkspace;
      storage.offset_bytes = workspace_.Place(bytes, uses.first, uses.last);
      p_.workspace_bytes = workspace_.bytes();
    }
    return absl::OkStatus();
  }

  // InvalidArgument: a launch exceeds a limit of the device.
  absl::Status CheckLaunches() const {
    for (const LoweredKernel& kernel : p_.kernels) {
      const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
      if (threads > limits_.max_threads) {
        return absl::InvalidArgumentError(absl::StrCat("a block of ", kernel.name, " has ", threads,
                                                       " threads; at most ", limits_.max_threads));
      }
      if (kernel.shared_bytes > limits_.shared_bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("a block of ", kernel.name, " needs ", kernel.shared_bytes,
                         " bytes of shared memory; at most ", limits_.shared_bytes));
      }
    }
    return absl::OkStatus();
  }

  // Returns the strides of a buffer in elements, one per dimension.
  ir::Shape Strides(BufferId id) const {
    if (!p_.storage[id].strides.empty()) return p_.storage[id].strides;
    const ir::Buffer& buffer = p_.buffers[id];
    ir::Shape strides(buffer.shape.size(), 1);
    for (size_t d = buffer.shape.size(); d-- > 1;) {
      const int64_t least = strides[d] * buffer.shape[d];
      strides[d - 1] = least;
      for (const ir::StorageAlign& align : buffer.aligns) {
        if (align.axis == static_cast<int>(d) - 1)
          strides[d - 1] = least + ir::FloorModInt(align.offset - least, align.factor);
      }
    }
    return strides;
  }

  Index Offset(BufferId id, const ir::IndexList& indices) {
    const ir::Shape strides = Strides(id);
    Index offset;
    for (size_t d = 0; d < strides.size(); ++d) offset.AddScaled(indices[d], strides[d]);
    return p_.atoms.Simplify(std::move(offset));
  }

  // Returns the clamped index in the gathered dimension, multiplied by the stride.
  ir::ExprId GatheredOffset(const ir::Expr& load) {
    ir::ExprPool& pool = p_.pool;
    const int64_t last = p_.buffers[load.buffer].shape[load.gathered] - 1;
    const int64_t stride = Strides(load.buffer)[load.gathered];
    ir::ExprId at = load.a;
    if (last > std::numeric_limits<int32_t>::max()) at = pool.Cast(ir::DType::kI64, at);
    const ir::DType dtype = pool[at].dtype;
    at = pool.Binary(ir::Op::kMax, at, pool.Const(dtype, 0));
    at = pool.Binary(ir::Op::kMin, at, pool.Const(dtype, last));
    at = pool.Cast(ir::DType::kI64, at);
    return stride == 1 ? at : pool.Binary(ir::Op::kMul, at, pool.Const(ir::DType::kI64, stride));
  }

  void Flatten(Stmt& stmt) {
    if (stmt.kind != Stmt::Kind::kStore) return;
    stmt.indices = {Offset(stmt.outputs[0], stmt.indices)};
    for (ir::ExprId& value : stmt.values) {
      value = p_.pool.Rewrite(
          value,
          [&](const ir::Expr& load) {
            const ir::IndexList indices = p_.pool.IndicesOf(load);
            Index offset = Offset(load.buffer, indices);
            if (load.gathered < 0) {
              return p_.pool.Load(load.buffer, load.dtype, {std::move(offset)});
            }
            return p_.pool.Gather(load.buffer, load.dtype, {std::move(offset)}, 0,
                                  GatheredOffset(load));
          },
          [](const Index& index) { return index; });
    }
  }

  LoweredProgram& p_;
  int64_t cores_ = 1;
  target::GpuLimits limits_;
  int64_t stack_bytes_[2] = {0, 0};  // in the kernel that computes, and in the one that packs
  int64_t thread_bytes_ = 0;         // private arrays of a GPU thread
  int statement_ = -1;               // at the top level, over all kernels
  int barriers_ = 0;                 // outside of loops and branches, over all kernels
  Region workspace_, thread_;
  std::vector<Region> shared_;  // of each kernel's blocks
  std::vector<Uses> uses_;
};

}  // namespace

absl::Status AssignStorage(LoweredProgram& program, const ir::Program& source,
                           const target::Target& target, const ArgumentStrides& strides) {
  return Assigner(program).Run(source, target, strides);
}

}  // namespace hone::lower

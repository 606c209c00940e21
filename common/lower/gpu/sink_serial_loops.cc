#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/lower/buffer_uses.h"
#include "common/lower/gpu/gpu_passes.h"
#include "common/lower/gpu/thread_nest.h"

namespace hone::lower {

using ir::BufferId;
using ir::Index;
using ir::NodeId;
using ir::ThreadAxis;

namespace {

// Of all arrays of a thread that may become registers or stay in its own memory.
constexpr int64_t kMaxElementsOfThread = 4096;

absl::Status Refuse(const ir::Program& program, NodeId at, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(why, "\n", program.ToText(at)));
}

// Whether one thread alone runs the users of a buffer in an iteration of the loop, because the
// loops over threads are around that loop.
bool IsWithinThread(const ir::Program& program, const std::vector<NodeId>& users, NodeId loop) {
  return std::ranges::none_of(users, [&](NodeId user) {
    for (NodeId at = program.node(user).parent; at != loop; at = program.node(at).parent) {
      if (IsBoundTo(program, at, IsThreadAxis)) return true;
    }
    return false;
  });
}

// The elements of a buffer that each iteration of some thread loops has for itself, while the
// threads of loops inside exchange them, get dimensions for the former.
class Expander {
 public:
  explicit Expander(ir::Program& program) : p_(program) {}

  void Run() {
    for (size_t b = 0; b < p_.buffers.size(); ++b) Expand(static_cast<BufferId>(b));
  }

 private:
  void Expand(BufferId id) {
    const std::vector<BufferId> group = WrittenTogether(p_, id);
    const bool done = *std::ranges::min_element(group) < id;
    const bool argument = std::ranges::any_of(group, [&](BufferId buffer) {
      return p_.buffers[buffer].input || p_.buffers[buffer].output;
    });
    const std::vector<NodeId> users = UsersOf(p_, group);
    if (done || argument || users.empty()) return;
    const auto in_group = [&](BufferId buffer) {
      return std::ranges::find(group, buffer) != group.end();
    };
    const NodeId ancestor = CommonAncestor(p_, users);
    if (ancestor == ir::kNoNode || IsWithinThread(p_, users, ancestor)) return;
    std::vector<NodeId> loops;
    for (NodeId at = ancestor; p_.IsLoop(at); at = p_.node(at).parent) {
      if (IsBoundTo(p_, at, IsThreadAxis)) loops.insert(loops.begin(), at);
    }
    if (loops.empty()) return;
    for (const NodeId user : users) {
      ir::Block block = p_.BlockOf(user);
      ir::IndexList outer;
      for (const NodeId loop : loops) {
        const int64_t extent = p_.node(loop).extent.value;
        const ir::AtomId var = p_.atoms.AddVar("each", extent);
        block.iters.push_back({var, extent, false, Index::Of(p_.node(loop).var)});
        outer.push_back(Index::Of(var));
      }
      const auto expanded = [&](const ir::IndexList& indices) {
        ir::IndexList result = outer;
        result.insert(result.end(), indices.begin(), indices.end());
        return result;
      };
      if (in_group(block.outputs[0])) block.indices = expanded(block.indices);
      for (ir::ExprId& value : block.values) {
        value = p_.pool.Rewrite(
            value,
            [&](const ir::Expr& load) {
              if (!in_group(load.buffer)) return ir::kNoExpr;
              const ir::IndexList indices = p_.pool.IndicesOf(load);
              return p_.pool.Load(load.buffer, load.dtype, expanded(indices));
            },
            [](const Index& index) { return index; });
      }
      p_.BlockOf(user) = std::move(block);
    }
    for (const BufferId member : group) {
      ir::Buffer& buffer = p_.buffers[member];
      ir::Shape shape;
      for (const NodeId loop : loops) shape.push_back(p_.node(loop).extent.value);
      shape.insert(shape.end(), buffer.shape.begin(), buffer.shape.end());
      buffer.shape = std::move(shape);
      for (ir::StorageAlign& align : buffer.aligns) align.axis += static_cast<int>(loops.size());
    }
  }

  ir::Program& p_;
};

class LaunchSinker {
 public:
  LaunchSinker(ThreadProgram& result, NodeId kernel)
      : result_(result), p_(result.program), kernel_(kernel) {}

  absl::Status Run() {
    HONE_RETURN_IF_ERROR(FindThreadProgram());
    HONE_RETURN_IF_ERROR(AddThreadLoops());
    const auto children = p_.node(innermost_).children;
    for (const NodeId child : children) Sink(child, 0, kNoPhase);
    return absl::OkStatus();
  }

 private:
  // Descends through the loops over blocks.
  absl::Status FindThreadProgram() {
    innermost_ = kernel_;
    std::set<ThreadAxis> seen;
    while (p_.node(innermost_).children.size() == 1) {
      const NodeId child = p_.node(innermost_).children[0];
      if (!IsBoundTo(p_, child, IsBlockAxis)) break;
      if (!seen.insert(p_.node(child).axis).second) {
        return Refuse(p_, child, "an axis of blocks occurs twice");
      }
      innermost_ = child;
    }
    return CheckInside(innermost_);
  }

  absl::Status CheckInside(NodeId id) {
    for (const NodeId child : p_.node(id).children) {
      if (IsBoundTo(p_, child, IsBlockAxis)) {
        return Refuse(p_, child, "a loop over blocks is inside a loop that is none");
      }
      if (IsBoundTo(p_, child, IsThreadAxis)) {
        int64_t& extent = extents_[Dimension(p_.node(child).axis)];
        const int64_t mine = p_.node(child).extent.value;
        if (extent != 0 && extent != mine) {
          return Refuse(p_, child,
                        absl::StrCat(ir::ThreadAxisName(p_.node(child).axis), " has ", mine,
                                     " threads here, but ", extent, " elsewhere in the kernel"));
        }
        extent = mine;
      }
      HONE_RETURN_IF_ERROR(CheckInside(child));
    }
    return absl::OkStatus();
  }

  absl::Status AddThreadLoops() {
    constexpr ThreadAxis kAxes[] = {ThreadAxis::kThreadX, ThreadAxis::kThreadY,
                                    ThreadAxis::kThreadZ};
    constexpr const char* kNames[] = {"tx", "ty", "tz"};
    const auto body = p_.node(innermost_).children;
    p_.node(innermost_).children.clear();
    for (int d = 2; d >= 0; --d) {
      if (extents_[d] <= 1) continue;
      const NodeId loop = p_.NewLoop(kNames[d], ir::ExtentTable::Constant(extents_[d]));
      p_.node(loop).loop = ir::LoopKind::kBound;
      p_.node(loop).axis = kAxes[d];
      p_.Append(innermost_, loop);
      innermost_ = loop;
      vars_[d] = p_.node(loop).var;
    }
    for (const NodeId child : body) p_.Append(innermost_, child);
    return absl::OkStatus();
  }

  // Replaces the thread loops of a subtree by their bodies. `axes` has a bit for each axis whose
  // loop is around the subtree, and `phase` is that of a node around it.
  void Sink(NodeId id, int axes, int phase) {
    const bool begins = phase == kNoPhase && !HasThreadLoop(p_, id, /*self=*/false);
    if (begins) phase = result_.phases++;
    if (begins && !IsBoundTo(p_, id, IsThreadAxis)) SetPhase(id, phase);
    ir::Node& node = p_.node(id);
    if (node.kind == ir::Node::Kind::kBlock) {
      for (int d = 0; d < 3; ++d) {
        if (vars_[d] == ir::kNoAtom || (axes >> d & 1) != 0) continue;
        p_.BlockOf(id).predicates.push_back({Index::Of(vars_[d]), 1});
      }
      return;
    }
    if (node.loop == ir::LoopKind::kParallel) node.loop = ir::LoopKind::kSerial;
    if (node.loop == ir::LoopKind::kBound && node.axis == ThreadAxis::kVThread) {
      node.loop = ir::LoopKind::kUnrolled;
      node.axis = ThreadAxis::kNone;
    }
    const auto children = node.children;
    if (!IsBoundTo(p_, id, IsThreadAxis)) {
      for (const NodeId child : children) Sink(child, axes, phase);
      return;
    }
    const int d = Dimension(node.axis);
    p_.SubstituteUnder(id, node.var, vars_[d] == ir::kNoAtom ? Index(0) : Index::Of(vars_[d]));
    const NodeId parent = node.parent;
    const size_t position = p_.PositionInParent(id);
    auto& siblings = p_.node(parent).children;
    siblings.erase(siblings.begin() + static_cast<ptrdiff_t>(position));
    p_.Remove(id);
    for (size_t c = 0; c < children.size(); ++c) p_.Insert(parent, position + c, children[c]);
    for (const NodeId child : children) {
      if (begins) SetPhase(child, phase);
      Sink(child, axes | 1 << d, phase);
    }
  }

  void SetPhase(NodeId root, int phase) {
    if (result_.phase_of.size() < p_.nodes.size())
      result_.phase_of.resize(p_.nodes.size(), kNoPhase);
    result_.phase_of[root] = phase;
  }

  ThreadProgram& result_;
  ir::Program& p_;
  NodeId kernel_;
  NodeId innermost_ = ir::kNoNode;
  std::array<int64_t, 3> extents_ = {0, 0, 0};
  std::array<ir::AtomId, 3> vars_ = {ir::kNoAtom, ir::kNoAtom, ir::kNoAtom};
};

// Decides where the intermediate buffers are, and takes the thread out of the indices of those that
// each thread has for itself.
class Placer {
 public:
  Placer(ir::Program& program, std::vector<bool> within_thread)
      : p_(program), within_thread_(std::move(within_thread)) {}

  absl::Status Run() {
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      HONE_RETURN_IF_ERROR(Place(static_cast<BufferId>(b)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Place(BufferId id) {
    ir::Buffer& buffer = p_.buffers[id];
    const bool argument = buffer.input || buffer.output;
    buffer.scope = ir::Scope::kGlobal;
    const std::vector<NodeId> users = UsersOf(p_, {id});
    if (argument || buffer.constant || users.empty()) return absl::OkStatus();
    const NodeId kernel = p_.KernelOf(users[0]);
    if (std::ranges::any_of(users, [&](NodeId user) { return p_.KernelOf(user) != kernel; })) {
      return absl::OkStatus();
    }
    const ThreadVars threads = ThreadVarsOf(p_, kernel);
    const bool one_block = threads.innermost == kernel || !HasBlockLoop(kernel);
    const bool small = ir::ElementsOf(buffer.shape) <= kMaxElementsOfThread;
    if (within_thread_[id]) {
      if (small) {
        buffer.scope = ir::Scope::kLocal;
        return absl::OkStatus();
      }
      // One thread of one block may as well use global memory.
      if (one_block && threads.innermost == kernel) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("each thread would need ", ir::ElementsOf(buffer.shape), " elements of ",
                       buffer.name, "; at most ", kMaxElementsOfThread));
    }
    const std::vector<Access> accesses = AccessesOf(p_, kernel, id);
    const bool first_only = std::ranges::any_of(accesses, [&](const Access& access) {
      const auto& predicates = p_.BlockOf(access.block).predicates;
      return std::ranges::any_of(predicates, [&](const ir::Condition& condition) {
        return condition.extent == 1 && threads.Contains(condition.index.SingleAtom());
      });
    });
    // Buffers that one block writes together have one list of indices.
    const bool alone = std::ranges::all_of(
        p_.WritersOf(id), [&](NodeId writer) { return p_.BlockOf(writer).outputs.size() == 1; });
    const std::vector<Digits> digits =
        first_only || !alone ? std::vector<Digits>() : OwnersOf(p_, threads, accesses);
    if (!digits.empty() && TakeOutThread(id, accesses, digits)) {
      p_.buffers[id].scope = ir::Scope::kLocal;
      return absl::OkStatus();
    }
    // A single block may exchange large tensors through global memory.
    const bool shared = !one_block || small;
    p_.buffers[id].scope = shared ? ir::Scope::kShared : ir::Scope::kGlobal;
    return absl::OkStatus();
  }

  bool HasBlockLoop(NodeId kernel) const {
    const auto& children = p_.node(kernel).children;
    return children.size() == 1 && IsBoundTo(p_, children[0], IsBlockAxis);
  }

  // An index without its thread: low + high / period * unit.
  Index WithoutThread(const Index& index, const Digits& digit) const {
    if (digit.thread.IsConstant()) return index;
    const Index rest = index - digit.thread;
    const int64_t high = ir::FloorDivInt(rest.constant(), digit.period);
    Index result(rest.constant() - high * digit.period + high * digit.unit);
    for (const ir::IndexTerm& term : rest.terms()) {
      const bool is_high = term.coeff % digit.period == 0;
      result += Index::Of(term.atom, is_high ? term.coeff / digit.period * digit.unit : term.coeff);
    }
    return result;
  }

  // Returns false, and changes nothing, if a thread would have too many elements.
  bool TakeOutThread(BufferId id, const std::vector<Access>& accesses,
                     const std::vector<Digits>& digits) {
    const size_t rank = digits.size();
    ir::Shape shape(rank, 1);
    std::vector<int64_t> least(rank, INT64_MAX), most(rank, INT64_MIN);
    for (const Access& access : accesses) {
      for (size_t d = 0; d < rank; ++d) {
        const ir::Range range =
            p_.atoms.RangeOf(p_.atoms.Simplify(WithoutThread(access.indices[d], digits[d])));
        least[d] = std::min(least[d], range.min);
        most[d] = std::max(most[d], range.max);
      }
    }
    for (size_t d = 0; d < rank; ++d) shape[d] = most[d] - least[d] + 1;
    if (ir::ElementsOf(shape) > kMaxElementsOfThread) return false;
    std::set<NodeId> blocks;
    for (const Access& access : accesses) blocks.insert(access.block);
    for (const NodeId at : blocks) {
      ir::Block block = p_.BlockOf(at);
      const auto rewritten = [&](const ir::IndexList& indices) {
        ir::IndexList result;
        for (size_t d = 0; d < rank; ++d) {
          const Index index = p_.atoms.Simplify(
              WithoutThread(p_.OverLoops(block, indices[d]), digits[d]) + -least[d]);
          const int64_t extent = p_.atoms.RangeOf(index).max + 1;
          const ir::AtomId var = p_.atoms.AddVar("own", extent);
          block.iters.push_back({var, extent, false, index});
          result.push_back(Index::Of(var));
        }
        return result;
      };
      if (block.outputs[0] == id) block.indices = rewritten(block.indices);
      for (ir::ExprId& value : block.values) {
        value = p_.pool.Rewrite(
            value,
            [&](const ir::Expr& load) {
              if (load.buffer != id) return ir::kNoExpr;
              const ir::IndexList indices = p_.pool.IndicesOf(load);
              return p_.pool.Load(id, load.dtype, rewritten(indices));
            },
            [](const Index& index) { return index; });
      }
      p_.BlockOf(at) = std::move(block);
    }
    p_.buffers[id].shape = shape;
    p_.buffers[id].aligns.clear();
    return true;
  }

  ir::Program& p_;
  std::vector<bool> within_thread_;
};

// Per buffer: whether all of its uses in a launch are within one iteration of the loops over
// threads around them.
std::vector<bool> WithinThread(const ir::Program& program) {
  std::vector<bool> within(program.buffers.size(), false);
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const std::vector<NodeId> users = UsersOf(program, {static_cast<BufferId>(b)});
    if (users.empty()) continue;
    const NodeId at = CommonAncestor(program, users);
    within[b] = at != ir::kNoNode && IsWithinThread(program, users, at);
  }
  return within;
}

}  // namespace

absl::StatusOr<ThreadProgram> SinkSerialLoops(const ir::Program& original) {
  ThreadProgram result;
  ir::Program& program = result.program;
  program = original;
  Expander(program).Run();
  std::vector<bool> within_thread = WithinThread(program);
  for (const NodeId kernel : program.kernels) {
    HONE_RETURN_IF_ERROR(LaunchSinker(result, kernel).Run());
  }
  HONE_RETURN_IF_ERROR(Placer(program, std::move(within_thread)).Run());
  result.phase_of.resize(program.nodes.size(), kNoPhase);
  return result;
}

}  // namespace hone::lower

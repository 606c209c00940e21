#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/lower/buffer_uses.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/gpu/thread_nest.h"

namespace hone::lower {

using ir::BufferId;
using ir::Index;
using ir::NodeId;
using ir::ThreadAxis;

namespace {

absl::Status Refuse(const ir::Program& program, NodeId at, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(why, "\n", program.ToText(at)));
}

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
      if (!IsBoundTo(p_, child, ir::IsBlockAxis)) break;
      if (!seen.insert(p_.node(child).axis).second) {
        return Refuse(p_, child, "an axis of blocks occurs twice");
      }
      innermost_ = child;
    }
    return CheckInside(innermost_);
  }

  absl::Status CheckInside(NodeId id) {
    for (const NodeId child : p_.node(id).children) {
      if (IsBoundTo(p_, child, ir::IsBlockAxis)) {
        return Refuse(p_, child, "a loop over blocks is inside a loop that is not over blocks");
      }
      if (IsBoundTo(p_, child, ir::IsThreadAxis)) {
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

  // Replaces the thread loops of a subtree by their bodies. `axes` has a bit for each axis with a
  // loop around the subtree; `phase` is the phase around it, or kNoPhase.
  void Sink(NodeId id, int axes, int phase) {
    const bool begins = phase == kNoPhase && !HasThreadLoop(p_, id, /*self=*/false);
    if (begins) phase = result_.phases++;
    if (begins && !IsBoundTo(p_, id, ir::IsThreadAxis)) SetPhase(id, phase);
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
    if (!IsBoundTo(p_, id, ir::IsThreadAxis)) {
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

absl::StatusOr<ThreadProgram> SinkSerialLoops(const ir::Program& program) {
  ThreadProgram result{.program = program, .within_thread = WithinThread(program)};
  for (const NodeId kernel : program.kernels) {
    HONE_RETURN_IF_ERROR(LaunchSinker(result, kernel).Run());
  }
  result.phase_of.resize(result.program.nodes.size(), kNoPhase);
  return result;
}

}  // namespace hone::lower

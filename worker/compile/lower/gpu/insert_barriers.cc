#include <algorithm>
#include <set>

#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/gpu/thread_nest.h"

namespace hone::lower {

using ir::BufferId;
using ir::NodeId;

namespace {

class BarrierInserter {
 public:
  explicit BarrierInserter(ThreadProgram& threads) : threads_(threads), p_(threads.program) {}

  void Run() {
    for (const NodeId kernel : std::vector<NodeId>(p_.kernels)) {
      const ThreadVars vars = ThreadVarsOf(p_, kernel);
      if (vars.vars == ThreadVars().vars) continue;  // one thread
      pending_.clear();
      before_.clear();
      vars_ = vars;
      FindExchanged(kernel, vars);
      for (const NodeId child : p_.node(vars.innermost).children) Walk(child);
      std::erase_if(before_, [&](NodeId root) { return BeginsWithBarrier(root); });
      for (const NodeId root : before_) {
        ir::Node barrier;
        barrier.kind = ir::Node::Kind::kBarrier;
        p_.nodes.push_back(std::move(barrier));
        p_.Insert(p_.node(root).parent, p_.PositionInParent(root),
                  static_cast<NodeId>(p_.nodes.size()) - 1);
      }
    }
    threads_.phase_of.resize(p_.nodes.size(), kNoPhase);
  }

 private:
  // An access by a phase that was not followed by a barrier yet.
  struct Pending {
    BufferId buffer;
    NodeId block;
    bool writes;
    int phase;
    bool earlier;     // in an earlier iteration of a loop around the phase
    ir::Index stage;  // the index of the first dimension
    friend bool operator==(const Pending&, const Pending&) = default;
  };

  // The buffers of a kernel with elements that more than one thread accesses.
  void FindExchanged(NodeId kernel, const ThreadVars& vars) {
    exchanged_.assign(p_.buffers.size(), false);
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      const auto id = static_cast<BufferId>(b);
      if (p_.buffers[b].input || p_.buffers[b].scope == ir::Scope::kLocal) continue;
      const std::vector<Access> accesses = AccessesOf(p_, kernel, id);
      if (std::ranges::none_of(accesses, &Access::writes)) continue;
      const bool by_first = std::ranges::any_of(accesses, [&](const Access& access) {
        return std::ranges::any_of(p_.BlockOf(access.block).predicates,
                                   [&](const ir::Condition& c) {
                                     return c.extent == 1 && vars.Contains(c.index.SingleAtom());
                                   });
      });
      exchanged_[b] = by_first || OwnersOf(p_, vars, accesses).empty();
    }
  }

  bool Conflicts(const Pending& now) const {
    return std::ranges::any_of(pending_, [&](const Pending& before) {
      if (before.buffer != now.buffer || (!before.writes && !now.writes)) return false;
      if (before.phase == now.phase && !before.earlier) return false;
      if (!before.earlier && InOtherStage(before.stage, now.stage)) return false;
      // A block that neither reduces nor recomputes elements does not write an element again before
      // another block has read it.
      const bool same = before.block == now.block && before.writes && now.writes;
      const ir::Block& block = p_.BlockOf(now.block);
      return !same || block.reducer != ir::Reducer::kNone || !block.exact;
    });
  }

  // Whether two indices differ in every iteration: (k + 1) % n and k % n, or 0 and 1. If they
  // depend on the thread, those of two threads may be equal.
  bool InOtherStage(const ir::Index& a, const ir::Index& b) const {
    if (a.IsConstant() && b.IsConstant()) return a.constant() != b.constant();
    const ir::AtomId left = a.SingleAtom(), right = b.SingleAtom();
    if (left == ir::kNoAtom || right == ir::kNoAtom) return false;
    const ir::Atom &x = p_.atoms[left], &y = p_.atoms[right];
    if (x.kind != ir::Atom::Kind::kMod || y.kind != x.kind || x.divisor != y.divisor) return false;
    bool depends_on_thread = false;
    p_.atoms.VisitVars(x.argument, [&](ir::AtomId var) {
      depends_on_thread = depends_on_thread || vars_.Contains(var);
    });
    if (depends_on_thread) return false;
    const ir::Index difference = x.argument - y.argument;
    return difference.IsConstant() && difference.constant() % x.divisor != 0;
  }

  void Add(const Pending& access) {
    if (std::ranges::find(pending_, access) == pending_.end()) pending_.push_back(access);
  }

  // Whether a loop begins with a barrier anyway.
  bool BeginsWithBarrier(NodeId loop) {
    NodeId at = loop;
    while (p_.IsLoop(at)) {
      if (!InitsBefore(at).empty()) return false;
      at = p_.node(at).children[0];
      if (before_.contains(at)) return true;
    }
    return false;
  }

  // Returns the accesses of the phases under a node.
  std::vector<Pending> AccessesUnder(NodeId id) {
    std::vector<Pending> accesses;
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      if (!exchanged_[b]) continue;
      const auto buffer = static_cast<BufferId>(b);
      for (const Access& access : AccessesOf(p_, id, buffer)) {
        accesses.push_back({buffer, access.block, access.writes, PhaseOf(access.block), false,
                            access.indices.empty() ? ir::Index() : access.indices[0]});
      }
    }
    return accesses;
  }

  // Puts a barrier before a node if one of its accesses needs one.
  void Separate(NodeId id, const std::vector<Pending>& accesses) {
    const auto conflicts = [&](const Pending& access) { return Conflicts(access); };
    if (!before_.contains(id) && std::ranges::none_of(accesses, conflicts)) return;
    before_.insert(id);
    pending_.clear();
  }

  // The phase that a block belongs to.
  int PhaseOf(NodeId block) const {
    NodeId at = block;
    while (threads_.phase_of[at] == kNoPhase) at = p_.node(at).parent;
    return threads_.phase_of[at];
  }

  // Returns the stores of neutral elements that LowerInits will put before the loop.
  std::vector<Pending> InitsBefore(NodeId loop) {
    std::vector<Pending> inits;
    for (const NodeId id : p_.BlocksUnder(loop)) {
      const ir::Block& block = p_.BlockOf(id);
      if (!block.has_init || !p_.IsReductionLoop(loop, block)) continue;
      for (const BufferId output : block.outputs) {
        if (exchanged_[output]) inits.push_back({output, id, true, PhaseOf(id), false, {}});
      }
    }
    return inits;
  }

  void Walk(NodeId id) {
    const std::vector<Pending> accesses = AccessesUnder(id);
    if (threads_.phase_of[id] != kNoPhase) {
      Separate(id, accesses);
      for (const Pending& access : accesses) Add(access);
      return;
    }
    if (p_.node(id).extent.value == 1) {
      for (const NodeId child : p_.node(id).children) Walk(child);
      return;
    }
    // One barrier before the loop costs less than one in each iteration.
    Separate(id, accesses);
    for (const Pending& init : InitsBefore(id)) Add(init);
    const std::vector<Pending> at_begin = pending_;
    // Accesses of a second iteration may conflict with those of the first. Repeat until no barrier
    // is added; barriers are never removed, so this ends.
    for (size_t barriers = before_.size() + 1; barriers != before_.size();) {
      barriers = before_.size();
      pending_ = at_begin;
      for (const NodeId child : p_.node(id).children) Walk(child);
      for (Pending& access : pending_) access.earlier = true;
      for (const NodeId child : p_.node(id).children) Walk(child);
    }
  }

  ThreadProgram& threads_;
  ir::Program& p_;
  std::vector<bool> exchanged_;
  ThreadVars vars_;  // of the current kernel
  std::vector<Pending> pending_;
  std::set<NodeId> before_;  // nodes with a barrier before them
};

}  // namespace

void InsertBarriers(ThreadProgram& threads) { BarrierInserter(threads).Run(); }

}  // namespace hone::lower

#include <algorithm>
#include <iterator>
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

namespace {

// Limit on each private array of a thread, which becomes registers or local memory.
constexpr int64_t kMaxElementsOfThread = 4096;

// Chooses the scopes of intermediate buffers, and removes the thread variables from the indices of
// private ones.
class Placer {
 public:
  Placer(ir::Program& program, std::vector<bool> within_thread)
      : p_(program), within_thread_(std::move(within_thread)) {}

  absl::Status Run() {
    for (ir::Buffer& buffer : p_.buffers) buffer.scope = ir::Scope::kGlobal;
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      HONE_RETURN_IF_ERROR(Place(static_cast<BufferId>(b)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Place(BufferId id) {
    ir::Buffer& buffer = p_.buffers[id];
    if (buffer.scope == ir::Scope::kLocal) return absl::OkStatus();  // together with another one
    const bool argument = buffer.input || buffer.output;
    const std::vector<NodeId> users = UsersOf(p_, {id});
    if (argument || users.empty()) return absl::OkStatus();
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
      // A launch with a single thread can use global memory instead.
      if (one_block && threads.innermost == kernel) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("each thread would need ", ir::ElementsOf(buffer.shape), " elements of ",
                       buffer.name, "; at most ", kMaxElementsOfThread));
    }
    if (MakeLocal(WrittenTogether(p_, id), kernel, threads)) return absl::OkStatus();
    // A single block may exchange large tensors through global memory.
    const bool shared = !one_block || small;
    p_.buffers[id].scope = shared ? ir::Scope::kShared : ir::Scope::kGlobal;
    return absl::OkStatus();
  }

  // Makes buffers that are written together local if each thread needs only its own elements.
  bool MakeLocal(const std::vector<BufferId>& group, NodeId kernel, const ThreadVars& threads) {
    std::vector<Access> accesses;
    for (const BufferId id : group) {
      const ir::Buffer& buffer = p_.buffers[id];
      if (buffer.input || buffer.output) return false;
      for (const NodeId user : UsersOf(p_, {id})) {
        if (p_.KernelOf(user) != kernel) return false;
      }
      std::ranges::move(AccessesOf(p_, kernel, id), std::back_inserter(accesses));
    }
    const std::vector<Digits> digits = OwnersOf(p_, threads, accesses);
    if (digits.empty() || !TakeOutThread(group, accesses, digits)) return false;
    for (const BufferId id : group) p_.buffers[id].scope = ir::Scope::kLocal;
    return true;
  }

  bool HasBlockLoop(NodeId kernel) const {
    const auto& children = p_.node(kernel).children;
    return children.size() == 1 && IsBoundTo(p_, children[0], ir::IsBlockAxis);
  }

  // Removes the thread from an index: low + high / period * unit.
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
  bool TakeOutThread(const std::vector<BufferId>& group, const std::vector<Access>& accesses,
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
    const auto in_group = [&](BufferId id) { return std::ranges::find(group, id) != group.end(); };
    for (const NodeId at : blocks) {
      RewriteIndices(p_, at, in_group, [&](ir::Block& block, const ir::IndexList& indices) {
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
      });
    }
    for (const BufferId id : group) {
      p_.buffers[id].shape = shape;
      p_.buffers[id].aligns.clear();
    }
    return true;
  }

  ir::Program& p_;
  std::vector<bool> within_thread_;
};

}  // namespace

absl::Status PlaceBuffers(ThreadProgram& threads) {
  return Placer(threads.program, threads.within_thread).Run();
}

}  // namespace hone::lower

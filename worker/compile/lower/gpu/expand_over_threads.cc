#include <algorithm>

#include "worker/compile/lower/buffer_uses.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/gpu/thread_nest.h"

namespace hone::lower {

using ir::BufferId;
using ir::Index;
using ir::NodeId;

namespace {

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
      if (IsBoundTo(p_, at, ir::IsThreadAxis)) loops.insert(loops.begin(), at);
    }
    if (loops.empty()) return;
    for (const NodeId user : users) {
      ir::IndexList outer;
      for (const NodeId loop : loops) {
        const int64_t extent = p_.node(loop).extent.value;
        const ir::AtomId var = p_.atoms.AddVar("each", extent);
        p_.BlockOf(user).iters.push_back({var, extent, false, Index::Of(p_.node(loop).var)});
        outer.push_back(Index::Of(var));
      }
      RewriteIndices(p_, user, in_group, [&](ir::Block&, const ir::IndexList& indices) {
        ir::IndexList result = outer;
        result.insert(result.end(), indices.begin(), indices.end());
        return result;
      });
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

}  // namespace

void ExpandOverThreads(ir::Program& program) { Expander(program).Run(); }

}  // namespace hone::lower

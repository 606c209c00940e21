#include "common/schedule/primitive/regenerate.h"

#include "absl/strings/str_cat.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

void Regenerate(ir::Program& program, NodeId block, const std::vector<ir::Interval>& region,
                const ir::IndexList& indices, NodeId parent, size_t position) {
  ir::Block content = program.BlockOf(block);
  content.predicates.clear();
  std::vector<NodeId> loops;
  for (const bool reduce : {false, true}) {
    for (ir::BlockIter& iter : content.iters) {
      if (iter.reduce != reduce) continue;
      ir::Interval interval{Index(0), ir::ExtentTable::Constant(iter.extent)};
      for (size_t d = 0; d < region.size(); ++d) {
        if (indices[d].SingleAtom() == iter.var) interval = region[d];
      }
      // The region covers the whole domain.
      if (interval.min.IsConstant() && interval.min.constant() <= 0 &&
          interval.min.constant() + interval.extent.value >= iter.extent) {
        interval = {Index(0), ir::ExtentTable::Constant(iter.extent)};
      }
      const NodeId loop = program.NewLoop(
          absl::StrCat(content.name, ".", program.atoms[iter.var].name), interval.extent);
      loops.push_back(loop);
      iter.binding = interval.min + Index::Of(program.node(loop).var);
      const ir::Range range = program.atoms.RangeOf(iter.binding);
      if (range.min < 0 || range.max >= iter.extent)
        content.predicates.push_back({iter.binding, iter.extent});
    }
  }
  program.BlockOf(block) = std::move(content);
  NodeId at = parent;
  for (size_t i = 0; i < loops.size(); ++i) {
    program.Insert(at, i == 0 ? position : 0, loops[i]);
    at = loops[i];
  }
  program.Insert(at, loops.empty() ? position : 0, block);
}

}  // namespace hone::schedule

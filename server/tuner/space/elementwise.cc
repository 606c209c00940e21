#include "server/tuner/space/elementwise.h"

#include <algorithm>

#include "common/ir/cases.h"
#include "server/tuner/space/contraction.h"

namespace hone::space {

ir::NodeId ElementwiseProducer(const ir::Program& program, ir::NodeId id, bool transposes) {
  const ir::Block& block = program.BlockOf(id);
  if (block.reducer != ir::Reducer::kNone || block.values.size() != 1) return ir::kNoNode;
  if (ir::HasGuardedValue(program.pool, block.values)) return ir::kNoNode;
  ir::NodeId producer = ir::kNoNode;
  bool elementwise = true;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const std::vector<ir::NodeId> writers = program.WritersOf(load.buffer);
    if (writers.empty()) return;
    elementwise &= writers.size() == 1 && (producer == ir::kNoNode || producer == writers[0]);
    producer = writers[0];
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    elementwise &= indices.size() == block.iters.size();
    for (size_t d = 0; d < indices.size() && elementwise; ++d) {
      const ir::AtomId var = block.iters[d].var;
      elementwise &= transposes ? DimensionOf(program.atoms, indices, var) >= 0
                                : indices[d].SingleAtom() == var;
    }
  });
  if (producer == ir::kNoNode || !elementwise) return ir::kNoNode;
  const ir::BufferId result = program.BlockOf(producer).outputs[0];
  return program.ReadersOf(result).size() == 1 ? producer : ir::kNoNode;
}

bool CopiesElements(const ir::Program& program, const ir::Block& block) {
  int loads = 0;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr&) { ++loads; });
  return loads == 1 &&
         std::all_of(block.iters.begin(), block.iters.end(),
                     [](const ir::BlockIter& iter) { return !iter.reduce || iter.extent == 1; });
}

}  // namespace hone::space

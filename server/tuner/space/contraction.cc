#include "server/tuner/space/contraction.h"

#include <algorithm>

#include "server/tuner/space/block_axes.h"

namespace hone::space {
namespace {

using ir::AtomId;
using ir::Index;

// Axes with fewer iterations than this are taken as rows only if no inner axis has more, because a
// register tile needs about this many.
constexpr int64_t kEnoughRows = 4;

bool DependsOn(const ir::Program& program, const ir::IndexList& indices, AtomId var) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const Index& index) { return program.atoms.DependsOn(index, var); });
}

bool ContiguousAlong(const ir::IndexList& indices, AtomId var) {
  return !indices.empty() && indices.back().CoeffOf(var) == 1;
}

ContractionOperand OperandOf(const ir::Program& program, const ir::Block& block,
                             const ir::Expr& load, const ir::IndexList& indices, AtomId tile_axis) {
  ContractionOperand operand{.buffer = load.buffer};
  int uses = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (program.atoms.DependsOn(indices[d], tile_axis)) {
      ++uses;
      if (indices[d].SingleAtom() == tile_axis) operand.panel_dimension = static_cast<int>(d);
    }
    operand.reduces.push_back(VariesWithReduction(program, block, indices[d]));
  }
  if (uses != 1) operand.panel_dimension = -1;
  return operand;
}

}  // namespace

int DimensionOf(const ir::AtomTable& atoms, const ir::IndexList& indices, AtomId var) {
  int dimension = -1;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!atoms.DependsOn(indices[d], var)) continue;
    if (dimension >= 0 || indices[d].SingleAtom() != var) return -1;
    dimension = static_cast<int>(d);
  }
  return dimension;
}

std::optional<Contraction> AnalyzeContraction(const ir::Program& program, ir::NodeId id) {
  const ir::Block& block = program.BlockOf(id);
  if (block.reducer == ir::Reducer::kNone || block.outputs.size() != 1 || block.indices.empty()) {
    return std::nullopt;
  }
  Contraction result{.vector = AxisOf(block, block.indices.back())};
  const auto [spatial, reduce] = AxesOf(block);
  if (result.vector < 0 || reduce.empty() || spatial.size() != block.indices.size())
    return std::nullopt;

  std::vector<ir::Expr> loads;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) { loads.push_back(load); });
  const bool gathers = std::any_of(loads.begin(), loads.end(),
                                   [](const ir::Expr& load) { return load.gathered >= 0; });
  if (gathers) return std::nullopt;
  const auto depends = [&](const ir::Expr& load, int axis) {
    return DependsOn(program, program.pool.IndicesOf(load), block.iters[axis].var);
  };
  // Chooses the vector operand and the row axis: inner axes first, and axes with enough rows before
  // the others.
  const ir::Expr* vector_load = nullptr;
  for (const int64_t enough : {kEnoughRows, int64_t{1}}) {
    for (auto axis = spatial.rbegin(); axis != spatial.rend() && result.row < 0; ++axis) {
      if (*axis == result.vector || block.iters[*axis].extent < enough) continue;
      for (const ir::Expr& load : loads) {
        if (!depends(load, result.vector) || depends(load, *axis)) continue;
        vector_load = &load;
        result.row = *axis;
        break;
      }
    }
  }
  if (vector_load == nullptr) return std::nullopt;
  const AtomId vector_var = block.iters[result.vector].var;
  result.vector_operand =
      OperandOf(program, block, *vector_load, program.pool.IndicesOf(*vector_load), vector_var);
  result.vector_contiguous = ContiguousAlong(program.pool.IndicesOf(*vector_load), vector_var);

  const auto row_load = std::find_if(
      loads.begin(), loads.end(), [&](const ir::Expr& load) { return depends(load, result.row); });
  if (row_load == loads.end()) return std::nullopt;
  result.row_operand = OperandOf(program, block, *row_load, program.pool.IndicesOf(*row_load),
                                 block.iters[result.row].var);
  // If a buffer is read by two loads, only one of them could be redirected to a packed copy.
  for (ContractionOperand* operand : {&result.row_operand, &result.vector_operand}) {
    const auto reads = std::count_if(loads.begin(), loads.end(), [&](const ir::Expr& load) {
      return load.buffer == operand->buffer;
    });
    if (reads != 1) operand->panel_dimension = -1;
  }

  result.reduce = reduce.back();
  for (int axis : reduce) {
    if (ContiguousAlong(program.pool.IndicesOf(*row_load), block.iters[axis].var) &&
        block.iters[axis].extent > 1) {
      result.reduce = axis;
    }
  }
  // A window index like w·s + r is contiguous in r, but a channel that is contiguous on its own
  // comes first.
  for (int axis : reduce) {
    const auto& indices = program.pool.IndicesOf(*row_load);
    if (!indices.empty() && indices.back().SingleAtom() == block.iters[axis].var)
      result.reduce = axis;
  }
  for (int axis : spatial) {
    if (axis == result.vector || axis == result.row) continue;
    (depends(*vector_load, axis) ? result.shared : result.row_like).push_back(axis);
  }
  for (int axis : reduce) {
    if (axis != result.reduce) result.windows.push_back(axis);
  }
  return result;
}

bool HasPaddedWindow(const ir::Program& program, ir::NodeId id, const Contraction& contraction) {
  const ir::Block& block = program.BlockOf(id);
  const ir::DType dtype = program.buffers[contraction.row_operand.buffer].dtype;
  if (block.guards.empty() || ir::AccumulatorOf(dtype) != dtype) return false;
  bool padded = true;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (load.buffer != contraction.row_operand.buffer) return;
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    padded &= indices.back().SingleAtom() == block.iters[contraction.reduce].var &&
              !DependsOn(program, indices, block.iters[contraction.vector].var);
    for (const ir::Condition& guard : block.guards) {
      padded &= std::any_of(indices.begin(), indices.end(),
                            [&](const Index& index) { return index == guard.index; });
    }
  });
  return padded;
}

}  // namespace hone::space

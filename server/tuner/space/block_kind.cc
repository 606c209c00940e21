#include "server/tuner/space/block_kind.h"

#include "absl/algorithm/container.h"
#include "common/ir/cases.h"

namespace hone::space {
namespace {

using ir::AtomId;
using ir::Index;

// Axes with fewer iterations than this are taken as rows only if no inner axis has more, because a
// register tile needs about this many.
constexpr int64_t kEnoughRows = 4;

bool DependsOn(const ir::Program& program, const ir::IndexList& indices, AtomId var) {
  return absl::c_any_of(indices,
                        [&](const Index& index) { return program.atoms.DependsOn(index, var); });
}

bool ContiguousAlong(const ir::IndexList& indices, AtomId var) {
  return !indices.empty() && indices.back().CoeffOf(var) == 1;
}

// Whether a block reads an image through a window that slides along the axis by one element per
// step, and that no two results along the other axes share.
bool SlidesAlong(const ir::Program& program, const ir::Block& block, const ir::Expr& load,
                 AtomId axis) {
  const ir::IndexList& indices = program.pool.IndicesOf(load);
  if (load.gathered >= 0 || !ContiguousAlong(indices, axis)) return false;
  if (!VariesWithReduction(program, block, indices.back())) return false;
  const Index rest = indices.back() - Index::Of(axis);
  const bool once =
      !program.atoms.DependsOn(rest, axis) && absl::c_count_if(indices, [&](const Index& index) {
                                                return program.atoms.DependsOn(index, axis);
                                              }) == 1;
  return once && absl::c_all_of(block.iters, [&](const ir::BlockIter& iter) {
           return iter.reduce || iter.extent == 1 ||
                  absl::c_any_of(indices, [&](const Index& i) { return i.CoeffOf(iter.var) != 0; });
         });
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

BlockAxes AxesOf(const ir::Block& block) {
  BlockAxes axes;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    (block.iters[i].reduce ? axes.reduce : axes.spatial).push_back(static_cast<int>(i));
  }
  return axes;
}

int64_t PointsOf(const ir::Block& block, absl::Span<const int> axes) {
  int64_t points = 1;
  for (const int axis : axes) points *= block.iters[axis].extent;
  return points;
}

int AxisOf(const ir::Block& block, const ir::Index& index) {
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (index.SingleAtom() == block.iters[i].var) return i;
  }
  return -1;
}

bool VariesWithReduction(const ir::Program& program, const ir::Block& block,
                         const ir::Index& index) {
  return absl::c_any_of(block.iters, [&](const ir::BlockIter& iter) {
    return iter.reduce && program.atoms.DependsOn(index, iter.var);
  });
}

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
  return loads == 1 && absl::c_all_of(block.iters, [](const ir::BlockIter& iter) {
           return !iter.reduce || iter.extent == 1;
         });
}

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
  const bool gathers =
      absl::c_any_of(loads, [](const ir::Expr& load) { return load.gathered >= 0; });
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

  const auto row_load =
      absl::c_find_if(loads, [&](const ir::Expr& load) { return depends(load, result.row); });
  if (row_load == loads.end()) return std::nullopt;
  result.row_operand = OperandOf(program, block, *row_load, program.pool.IndicesOf(*row_load),
                                 block.iters[result.row].var);
  // If a buffer is read by two loads, only one of them could be redirected to a packed copy.
  for (ContractionOperand* operand : {&result.row_operand, &result.vector_operand}) {
    const auto reads = absl::c_count_if(
        loads, [&](const ir::Expr& load) { return load.buffer == operand->buffer; });
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
      padded &= absl::c_any_of(indices, [&](const Index& index) { return index == guard.index; });
    }
  });
  return padded;
}

std::optional<Window> AnalyzeWindow(const ir::Program& program, const ir::Block& block) {
  if (block.reducer == ir::Reducer::kNone || block.outputs.size() != 1 || block.indices.empty())
    return std::nullopt;
  const BlockAxes axes = AxesOf(block);
  Window window{.vector = AxisOf(block, block.indices.back()), .taps = axes.reduce};
  if (window.vector < 0 || axes.spatial.size() != block.indices.size()) return std::nullopt;
  const ir::AtomId vector = block.iters[window.vector].var;
  bool contiguous = false, slides = false, broadcast = false, other = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    const bool reduces = absl::c_any_of(indices, [&](const ir::Index& index) {
      return VariesWithReduction(program, block, index);
    });
    if (!reduces) return;
    if (!indices.empty() && indices.back().SingleAtom() == vector) {
      contiguous = true;
    } else if (SlidesAlong(program, block, load, vector)) {
      slides = true;
    } else if (!DependsOn(program, indices, vector)) {
      broadcast = true;
    } else {
      other = true;
    }
  });
  if (other || contiguous == slides || (contiguous && broadcast)) return std::nullopt;
  window.slides_along_vectors = slides;
  for (auto axis = axes.spatial.rbegin(); axis != axes.spatial.rend(); ++axis) {
    if (*axis == window.vector) continue;
    const bool tiled = block.iters[*axis].extent > 1;
    if (tiled && window.width < 0) {
      window.width = *axis;
    } else if (tiled && window.height < 0) {
      window.height = *axis;
    } else {
      window.outer.insert(window.outer.begin(), *axis);
    }
  }
  return window;
}

}  // namespace hone::space

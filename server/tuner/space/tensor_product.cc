#include "server/tuner/space/tensor_product.h"

#include <algorithm>
#include <initializer_list>

namespace hone::space {
namespace {

using ir::Intrinsic;

// The tensors of an instruction's description.
struct Types {
  ir::DType left, right, sum;
  friend bool operator==(const Types&, const Types&) = default;
};

Types TypesOf(const Intrinsic& instruction) {
  const ir::Workload& description = ir::DescriptionOf(instruction);
  const std::vector<ir::BufferId> inputs = description.Inputs();
  return {description.tensors[inputs[0]].dtype, description.tensors[inputs[1]].dtype,
          description.tensors[description.stages.back().tensors[0]].dtype};
}

// Whether the block adds products of two loads, each of which is converted to the type of the sum.
bool MultipliesConverted(const ir::Program& program, const ir::Block& block) {
  if (block.reducer != ir::Reducer::kSum || !block.has_init) return false;
  const ir::ExprPool& pool = program.pool;
  const ir::Expr& product = pool[block.values[0]];
  if (product.op != ir::Op::kMul) return false;
  return std::ranges::all_of(
      std::initializer_list<ir::ExprId>{product.a, product.b}, [&](ir::ExprId factor) {
        return pool[factor].op == ir::Op::kCast && pool[pool[factor].a].op == ir::Op::kLoad;
      });
}

// Whether a tensor is an input, or a copy of one, possibly converted and with padding.
bool IsCopyOfInput(const ir::Program& program, ir::BufferId buffer) {
  const ir::ExprPool& pool = program.pool;
  return std::ranges::all_of(program.WritersOf(buffer), [&](ir::NodeId writer) {
    const ir::Block& block = program.BlockOf(writer);
    if (block.reducer != ir::Reducer::kNone) return false;
    int loads = 0;
    bool copies = true;
    pool.Visit(block.values[0], [&](const ir::Expr& expr) {
      loads += expr.op == ir::Op::kLoad;
      copies &=
          expr.op == ir::Op::kCast || expr.op == ir::Op::kWhere || expr.op == ir::Op::kConst ||
          (expr.op == ir::Op::kLoad && expr.gathered < 0 && IsCopyOfInput(program, expr.buffer));
    });
    return copies && loads == 1;
  });
}

// Whether an operand is an input, or a copy of one, that does not depend on the axis `other` of
// the other operand's panels.
bool IsInput(const ir::Program& program, const ir::Block& block, const ContractionOperand& operand,
             int other) {
  if (!IsCopyOfInput(program, operand.buffer)) return false;
  bool varies = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (load.buffer != operand.buffer) return;
    for (const ir::Index& index : program.pool.IndicesOf(load)) {
      varies |= program.atoms.DependsOn(index, block.iters[other].var);
    }
  });
  return !varies;
}

// Whether an input can be packed along its panel dimension and the reduction.
bool Packs(const ir::Program& program, const ir::Block& block, const ContractionOperand& operand,
           int reduce) {
  return operand.panel_dimension >= 0 && !operand.reduces[operand.panel_dimension] &&
         ReducedDimension(program, block, operand, reduce) >= 0;
}

// Whether a guard of the block depends on one of these axes.
bool Guards(const ir::Program& program, const ir::Block& block, std::initializer_list<int> axes) {
  return std::ranges::any_of(block.guards, [&](const ir::Condition& guard) {
    return std::ranges::any_of(axes, [&](int axis) {
      return program.atoms.DependsOn(guard.index, block.iters[axis].var);
    });
  });
}

// Whether little is added to the axes when they are rounded up to the extents of an instruction.
bool FillsBlocks(const ir::Block& block, const Contraction& c, const TensorProduct& product) {
  // Of the sums and of the terms after padding. The three channels of an image are enough.
  constexpr double kLeastSums = 0.8, kLeastTerms = 0.75;
  const auto filled = [&](int axis, int64_t size) {
    const int64_t extent = block.iters[axis].extent;
    return static_cast<double>(extent) / static_cast<double>(ir::CeilDivInt(extent, size) * size);
  };
  return filled(c.row, product.rows) * filled(c.vector, product.columns) >= kLeastSums &&
         filled(c.reduce, product.terms) >= kLeastTerms;
}

TensorProduct ProductOf(const Intrinsic& instruction) {
  const ir::Workload& description = ir::DescriptionOf(instruction);
  const ir::Stage& stage = description.stages.back();
  TensorProduct product{.instruction = &instruction,
                        .rows = stage.spatial.size() > 1 ? stage.spatial[0].extent : 1,
                        .columns = stage.spatial.back().extent,
                        .terms = stage.reduce[0].extent};
  product.group =
      product.is_tile() ? description.tensors[description.Inputs()[1]].shape.back() : product.terms;
  return product;
}

// Whether an instruction is better than another of the same kind for this many rows: a longer
// vector, or tiles that add fewer rows, and of these the larger ones.
bool IsBetter(const TensorProduct& product, const TensorProduct& other, int64_t rows) {
  if (!product.is_tile()) return product.columns > other.columns;
  const auto computed = [&](const TensorProduct& each) {
    return ir::CeilDivInt(rows, each.rows) * each.rows;
  };
  const int64_t own = computed(product), others = computed(other);
  return own != others ? own < others : product.rows > other.rows;
}

}  // namespace

int ReducedDimension(const ir::Program& program, const ir::Block& block,
                     const ContractionOperand& operand, int reduce) {
  int found = -1;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (load.buffer != operand.buffer) return;
    found = DimensionOf(program.atoms, program.pool.IndicesOf(load), block.iters[reduce].var);
  });
  return found;
}

bool ReadsInPlace(const ir::Program& program, const ir::Block& block,
                  const ContractionOperand& operand, int reduce) {
  const ir::AtomId var = block.iters[reduce].var;
  bool contiguous = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (load.buffer != operand.buffer) return;
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    int uses = 0;
    for (const ir::Index& index : indices) uses += program.atoms.DependsOn(index, var);
    const ir::Index others = indices.back() - ir::Index::Of(var);
    contiguous = uses == 1 && !program.atoms.DependsOn(others, var);
  });
  return contiguous;
}

std::vector<TensorProduct> TensorProductsFor(const target::Target& target,
                                             const ir::Program& program, ir::NodeId id,
                                             const Contraction& c) {
  const ir::Block& block = program.BlockOf(id);
  if (!MultipliesConverted(program, block) || Guards(program, block, {c.vector, c.reduce}) ||
      !IsInput(program, block, c.row_operand, c.vector) ||
      !IsInput(program, block, c.vector_operand, c.row) ||
      !Packs(program, block, c.vector_operand, c.reduce))
    return {};
  // Windows overlap, so their rows are not packed but read in place.
  const bool packs_rows = c.windows.empty() && Packs(program, block, c.row_operand, c.reduce) &&
                          !Guards(program, block, {c.row});
  const bool reads_in_place = ReadsInPlace(program, block, c.row_operand, c.reduce);
  const bool pads_terms = ReducedDimension(program, block, c.row_operand, c.reduce) >= 0;
  const Types types{program.buffers[c.row_operand.buffer].dtype,
                    program.buffers[c.vector_operand.buffer].dtype,
                    program.buffers[block.outputs[0]].dtype};
  std::vector<TensorProduct> products;
  for (const Intrinsic& instruction : ir::Intrinsics()) {
    if (instruction.shape == Intrinsic::Shape::kScalar || instruction.arch != target.arch ||
        !target.HasFeature(instruction.feature) || !(TypesOf(instruction) == types))
      continue;
    const TensorProduct product = ProductOf(instruction);
    const bool is_too_wide =
        !product.is_tile() &&
        product.rows * product.columns * 8 * ir::DTypeBytes(types.sum) > target.vector_bits;
    // A tile has no rows that are left out.
    const bool needs_packed_rows =
        product.joins_rows() || !reads_in_place ||
        (product.is_tile() && block.iters[c.row].extent % product.rows != 0);
    if (is_too_wide || !FillsBlocks(block, c, product) || (!packs_rows && needs_packed_rows) ||
        (product.is_tile() && Guards(program, block, {c.row})) ||
        (!pads_terms && block.iters[c.reduce].extent % product.terms != 0))
      continue;
    const auto rival = std::ranges::find_if(products, [&](const TensorProduct& other) {
      return other.is_tile() == product.is_tile() && other.terms == product.terms &&
             (product.is_tile() || other.rows == product.rows);
    });
    if (rival == products.end()) {
      products.push_back(product);
    } else if (IsBetter(product, *rival, block.iters[c.row].extent)) {
      *rival = product;
    }
  }
  return products;
}

}  // namespace hone::space

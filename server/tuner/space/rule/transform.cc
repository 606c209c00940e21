#include "server/tuner/space/transform.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {
namespace {

using ir::NodeId;
using schedule::Operand;

// Minimum number of tiles per row if rows are computed one by one, because the tiles are then the
// rows of a register tile.
constexpr int64_t kLeastColumns = 7;

// Returns the position of a block's nest in a sketch; −1 if it has already been scheduled.
int OpenNestOf(const Sketch& sketch, const ir::Program& program, NodeId block) {
  for (size_t i = 0; i < sketch.nests.size(); ++i) {
    if (sketch.nests[i].name == program.BlockOf(block).name)
      return sketch.nests[i].state == Nest::State::kOpen ? static_cast<int>(i) : -1;
  }
  return -1;
}

std::vector<NodeId> BlocksOf(const Transform& transform) {
  std::vector<NodeId> blocks = {transform.last, transform.first};
  if (transform.gathered != ir::kNoNode) blocks.push_back(transform.gathered);
  return blocks;
}

// Whether all blocks are distinct and have unscheduled nests.
bool AreOpen(const Sketch& sketch, const ir::Program& program, std::vector<NodeId> blocks) {
  absl::c_sort(blocks);
  return std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end() &&
         absl::c_all_of(blocks,
                        [&](NodeId block) { return OpenNestOf(sketch, program, block) >= 0; });
}

// The products of transformed tiles that an output's transform reads, as in Winograd's convolution.
struct Products {
  NodeId block = ir::kNoNode;
  Contraction contraction;
  Transform inputs;
  int64_t rows = 1, columns = 1;  // number of tiles
};

std::optional<Products> FindProducts(const ir::Program& program, const Transform& outputs) {
  // Rows and columns are the image's last two axes.
  const ir::Block& last = program.BlockOf(outputs.last);
  if (outputs.across.divisor == 0 || outputs.along.divisor == 0 ||
      outputs.across.iter + 1 != outputs.along.iter || outputs.along.iter + 1 != outputs.vector) {
    return std::nullopt;
  }
  Products found;
  found.columns = ir::CeilDivInt(last.iters[outputs.along.iter].extent, outputs.along.divisor);
  found.rows = ir::CeilDivInt(last.iters[outputs.across.iter].extent, outputs.across.divisor);
  for (int i = 0; i < outputs.across.iter; ++i) found.rows *= last.iters[i].extent;

  const auto producer_of = [&](ir::BufferId buffer, NodeId reader) {
    const std::vector<NodeId> writers = program.WritersOf(buffer);
    const bool own =
        writers.size() == 1 && program.ReadersOf(buffer) == std::vector<NodeId>{reader};
    return own ? writers[0] : ir::kNoNode;
  };
  program.pool.VisitLoads(program.BlockOf(outputs.first).values[0], [&](const ir::Expr& load) {
    if (const NodeId writer = producer_of(load.buffer, outputs.first); writer != ir::kNoNode)
      found.block = writer;
  });
  if (found.block == ir::kNoNode) return std::nullopt;
  std::optional<Contraction> contraction = AnalyzeContraction(program, found.block);
  const ir::Block& block = program.BlockOf(found.block);
  if (!contraction.has_value() || !block.guards.empty() || !contraction->row_like.empty() ||
      !contraction->windows.empty() ||
      block.iters[contraction->row].extent != found.rows * found.columns) {
    return std::nullopt;
  }
  found.contraction = *std::move(contraction);
  const NodeId inputs = producer_of(found.contraction.row_operand.buffer, found.block);
  if (inputs == ir::kNoNode) return std::nullopt;
  std::optional<Transform> transform = FindTransform(program, inputs);
  if (!transform.has_value()) return std::nullopt;
  found.inputs = *std::move(transform);
  return found;
}

// Returns the bytes that a row of tiles keeps between the two transforms.
int64_t BytesOfRow(const ir::Program& program, const Products& products) {
  int64_t elements = 0;
  for (const NodeId block : {products.block, products.inputs.last})
    elements += ir::ElementsOf(program.buffers[program.BlockOf(block).outputs[0]].shape);
  const ir::DType dtype = program.buffers[program.BlockOf(products.block).outputs[0]].dtype;
  return elements / products.rows * ir::DTypeBytes(dtype);
}

// Returns the blocks that AtRows places: the outputs' transform, the products and the inputs'
// transform.
std::vector<NodeId> BlocksOf(const Transform& outputs, const Products& products) {
  std::vector<NodeId> blocks = BlocksOf(outputs);
  blocks.push_back(products.block);
  for (const NodeId block : BlocksOf(products.inputs)) blocks.push_back(block);
  return blocks;
}

// Schedules a transform, or two transforms and everything between them, in a sketch. REQUIRES:
// AreOpen for all blocks that are placed; each is placed once.
class Transformer {
 public:
  Transformer(const Sketch& sketch, const ir::Program& program, const TileLimits& limits)
      : sketch_(sketch), program_(program), limits_(limits) {}

  // Schedules a transform as a separate nest, with the tiles distributed over threads.
  Sketch Alone(const Transform& transform) {
    const TransformSchedule placed = Place(transform, 0);
    placed.SetKinds(sketch_.trace);
    edit_.Add("parallel", {edit_.Fuse(placed.tiles())});
    return std::move(sketch_);
  }

  // Schedules one row of tiles after the other, so that the products' inputs and outputs stay in a
  // cache.
  //   parallel rows | inputs transformed; products; outputs transformed
  Sketch AtRows(const Transform& outputs, const Products& products) {
    const TransformSchedule last = Place(outputs, 0);
    const Operand row = edit_.Fuse({last.tiles().begin(), last.tiles().end() - 1});
    edit_.Add("compute_at", {NestOf(products.block).block, row});
    edit_.Add("compute_at", {NestOf(products.inputs.last).block, row});
    const TransformSchedule inputs = Place(products.inputs, 1);
    inputs.SetKinds(sketch_.trace);
    last.SetKinds(sketch_.trace);
    // Decisions come last, so that the instructions before them are replayed only once
    // (common/schedule/replay.cc).
    Multiply(products, row);
    sketch_.name.push_back("rows");
    return std::move(sketch_);
  }

 private:
  Nest& NestOf(NodeId block) { return sketch_.nests[OpenNestOf(sketch_, program_, block)]; }
  // `above`: the number of loops around a transform that was moved into another nest.
  TransformSchedule Place(const Transform& transform, int above) {
    TransformSchedule::Blocks blocks;
    const auto take = [&](NodeId block, Operand& reg) {
      if (block == ir::kNoNode) return;
      Nest& nest = NestOf(block);
      reg = nest.block;
      nest.state = Nest::State::kDone;
    };
    take(transform.last, blocks.last);
    take(transform.first, blocks.first);
    take(transform.gathered, blocks.gathered);
    return TransformSchedule(sketch_.trace, program_, transform, blocks, limits_.lanes, above);
  }

  // Computes the products of a row in register tiles, with one panel of weights for all of its
  // tiles. `pack` handles the weights and parallel_vectorize_unroll the threads.
  void Multiply(const Products& products, const Operand& row) {
    const Contraction& c = products.contraction;
    const ir::Block& block = program_.BlockOf(products.block);
    Nest& nest = NestOf(products.block);
    Tiling tiling{.contraction = c,
                  .lanes = std::min(limits_.lanes, block.iters[c.vector].extent),
                  .outer = row};
    constexpr int kAbove = 1;  // row
    const std::vector<Operand> loops = edit_.Loops(nest.block, kAbove + block.iters.size());
    const std::vector<Operand> tile = edit_.Add(
        "sample_register_tile", {},
        {{"candidates", RegisterTiles(limits_, products.columns, block.iters[c.vector].extent)}});
    tiling.rows = tile[0];
    tiling.vectors = tile[1];
    std::vector<int64_t> steps = limits_.k_unroll;
    std::erase_if(steps, [&](int64_t k) { return k > block.iters[c.reduce].extent; });
    tiling.k_unroll = edit_.Sample(std::move(steps));
    const std::vector<Operand> tiled =
        edit_.Add("register_tile", {nest.block, loops[kAbove + c.row], loops[kAbove + c.vector],
                                    loops[kAbove + c.reduce], tile[0], tile[1],
                                    Literal(tiling.lanes), tiling.k_unroll});
    edit_.Add("reorder", {tiled[1], tiled[0], tiled[2]});
    edit_.Add("annotate",
              {tiled[2], schedule::Text("prefetch"), edit_.Sample({0, limits_.prefetch_steps})});
    AddTileConstraints(limits_,
                       {.rows = DecisionOf(tiling.rows),
                        .vectors = DecisionOf(tiling.vectors),
                        .k_unroll = DecisionOf(tiling.k_unroll)},
                       {.lanes = tiling.lanes}, sketch_.constraints);
    tiling.inner = tiled[0];
    tiling.loops_to_inner = kAbove + static_cast<int>(c.shared.size()) + 2;
    nest.state = Nest::State::kTiled;
    nest.tiling = std::move(tiling);
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  const ir::Program& program_;
  const TileLimits& limits_;
};

}  // namespace

// Schedules small linear maps of tiles: unrolls their short axes, with one vector of channels at a
// time. For the transform of outputs, an alternative also computes the products and the transform
// of inputs, one row of tiles at a time.
std::vector<Sketch> ApplyTransform(const RuleContext& context, const Sketch& sketch, int nest) {
  // The rule is applied to the last block first, because a transform is found from its last block.
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const TileLimits& limits = found->limits;
  const std::optional<Transform> transform = FindTransform(program, found->id);
  if (!transform.has_value() || !AreOpen(sketch, program, BlocksOf(*transform))) return {};

  std::vector<Sketch> sketches = {Transformer(sketch, program, limits).Alone(*transform)};
  const std::optional<Products> products = FindProducts(program, *transform);
  if (products.has_value() && AreOpen(sketch, program, BlocksOf(*transform, *products)) &&
      products->columns >= kLeastColumns && products->rows >= limits.cores &&
      BytesOfRow(program, *products) <= limits.block_bytes) {
    sketches.push_back(Transformer(sketch, program, limits).AtRows(*transform, *products));
  }
  return sketches;
}

}  // namespace hone::space

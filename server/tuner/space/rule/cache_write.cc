#include "absl/strings/str_cat.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

using schedule::Operand;

// Keeps the partial sums of a tiled reduction, which are stored to memory between its tiles, in a
// small buffer that is copied to the output at the end of the tile. This pays if the output's rows
// collide in L1.
std::vector<Sketch> ApplyCacheWrite(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest, Nest::State::kTiled);
  const Nest& tiled = sketch.nests[nest];
  if (!found.has_value() || !tiled.tiling->reduce_outer.has_value() || tiled.tiling->joined_rows) {
    return {};
  }
  const ir::Block& block = found->block();
  const ir::Buffer& output = found->output();
  int64_t stride = ir::DTypeBytes(output.dtype);
  const ir::AtomId row = block.iters[tiled.tiling->contraction.row].var;
  for (size_t d = block.indices.size(); d-- > 0 && block.indices[d].SingleAtom() != row;) {
    stride *= output.shape[d];
  }
  if (!output.output || stride % found->limits.collision_bytes != 0) return {};

  Sketch cached = sketch;
  const Operand copy = cached.trace.Add("cache_write", {tiled.block, schedule::Text("global")})[0];
  cached.trace.Add("reverse_compute_at", {copy, tiled.tiling->outer});
  cached.nests.push_back({.name = absl::StrCat(tiled.name, "_copy"),
                          .block = copy,
                          .state = Nest::State::kFused,
                          .loops = 1 + static_cast<int>(block.indices.size()),
                          .lanes = tiled.tiling->lanes});
  cached.name.push_back("cache");
  ++cached.minor;
  return {sketch, std::move(cached)};
}

}  // namespace hone::space

#include "server/tuner/space/split_sum.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

using schedule::Operand;

std::vector<int64_t> PartSizes(int64_t extent, int64_t least, int64_t most, int64_t least_terms) {
  std::vector<int64_t> sizes;
  for (int64_t parts = least; parts <= most && parts * least_terms <= extent; ++parts) {
    if (extent % parts == 0) sizes.push_back(extent / parts);
  }
  return sizes;
}

SplitSum SplitReduction(const Sketch& sketch, int nest, const ir::Block& block, int axis,
                        std::vector<int64_t> sizes, int dimension) {
  SplitSum split{.sketch = sketch, .combining = sketch.nests[nest].block};
  SketchEditor edit(split.sketch);
  const std::vector<Operand> loops = edit.Loops(split.combining, block.iters.size());
  const std::vector<Operand> cut = edit.Split(loops[axis], {edit.Sample(std::move(sizes))});
  std::vector<Operand> spatial, reductions;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    (block.iters[i].reduce ? reductions : spatial).push_back(i == axis ? cut[1] : loops[i]);
    if (!block.iters[i].reduce) split.combining_block.iters.push_back(block.iters[i]);
  }
  split.combining_block.iters.push_back(block.iters[axis]);
  // Parts that run outermost get their own nest, whose loop order equals its variable order.
  std::vector<Operand> order = {cut[0]};
  Append(order, spatial);
  Append(order, reductions);
  edit.Add("reorder", order);
  const Operand partial = edit.Add("rfactor", {split.combining, cut[0], Literal(dimension)})[0];
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + spatial.size());
  edit.Add("reorder", order);

  const std::string& name = sketch.nests[nest].name;
  split.sketch.nests.push_back(
      {.name = name, .block = split.combining, .state = Nest::State::kDone});
  split.sketch.nests[nest].name = absl::StrCat(name, "_rf");
  split.sketch.nests[nest].block = partial;
  split.sketch.name.push_back("parts");
  return split;
}

}  // namespace hone::space

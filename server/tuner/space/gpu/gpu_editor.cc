#include "server/tuner/space/gpu/gpu_editor.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace hone::space {
namespace {

constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};

}  // namespace

GpuEditor::Operands GpuEditor::Grid(const Operands& outer, int64_t points, const Operands& inner,
                                    int64_t limit) {
  if (points > limit) {
    Operands all = outer;
    Append(all, inner);
    return {Fuse(all)};
  }
  Operands grid;
  if (!outer.empty()) grid.push_back(Fuse(outer));
  Append(grid, inner);
  return grid;
}

void GpuEditor::BindBlocks(const Operands& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    Add("bind", {loops[i], schedule::Text(absl::StrCat("blockIdx.", kAxes[loops.size() - 1 - i]))});
  }
}

void GpuEditor::BindThreads(const Operands& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    Add("bind",
        {loops[i], schedule::Text(absl::StrCat("threadIdx.", kAxes[loops.size() - 1 - i]))});
  }
}

void GpuEditor::Unroll(const Operands& loops) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) Add("unroll", {loops[i]});
  Vectorize(loops.back());
}

void GpuEditor::Cooperate(const Operand& block, size_t loops, size_t rank, const Operands& threads,
                          const Operand& vector, size_t inside) {
  const Operands around = Loops(block, loops + inside);
  const auto end = around.end() - static_cast<ptrdiff_t>(inside);
  const Operand fused = Fuse(Operands(end - static_cast<ptrdiff_t>(rank), end));
  Operands sizes = threads;
  sizes.push_back(vector);
  const Operands parts = Split(fused, sizes);
  // `parts` are the serial loop, the threads and the vector.
  Operands order(parts.begin() + 1, parts.end() - 1);
  const Operands bound = order;
  order.push_back(parts[0]);
  order.insert(order.end(), end, around.end());
  order.push_back(parts.back());
  Add("reorder", order);
  BindThreads(bound);
  Vectorize(parts.back());
}

}  // namespace hone::space

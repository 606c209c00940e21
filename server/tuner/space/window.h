#ifndef HONE_SERVER_TUNER_SPACE_WINDOW_H_
#define HONE_SERVER_TUNER_SPACE_WINDOW_H_

#include <optional>
#include <vector>

#include "common/ir/program.h"

namespace hone::space {

// A reduction whose operands are all contiguous along the result's last axis: unlike in a
// contraction, no operand is broadcast. Axes are positions in the block's iters.
struct Window {
  int vector = -1;
  std::vector<int> outer;       // spatial axes that are not tiled
  int height = -1, width = -1;  // tiled axes; -1: none
  std::vector<int> taps;
};

// Returns nullopt if the block is not such a reduction.
std::optional<Window> AnalyzeWindow(const ir::Program& program, const ir::Block& block);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_WINDOW_H_

#ifndef HONE_CLIENT_CLI_DATASET_ANSOR_LOWERING_H_
#define HONE_CLIENT_CLI_DATASET_ANSOR_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"

// What TVM decides when it lowers a schedule of Ansor, beyond its steps.
namespace hone::cli {

inline constexpr int64_t kMostUnrolledSteps = 1 << 20;

// The loops that the pass UnrollLoop unrolls, innermost first. `limits`: the value of
// auto_unroll_max_step for the nests under some loops, at most kMostUnrolledSteps. A loop is
// unrolled if everything in it is, and it then has no more stores than the limit. REQUIRES: no
// virtual threads.
std::vector<ir::NodeId> LoopsThatTvmUnrolls(const ir::Program& program,
                                            const std::map<ir::NodeId, int64_t>& limits);

// One of the factors into which splits have divided an axis of a stage.
struct AxisPart {
  size_t axis;
  int64_t extent;
};

// The layout in which Ansor stores a constant whose layout is free: a dimension for each loop
// around its reader, outermost first, such as "a, b -> b / 16, a, b % 16". `parts`: of these loops.
// Empty if the loops do not visit each element of the constant's dimensions.
std::string LayoutInOrderOfLoops(const ir::Program& program, ir::NodeId reader,
                                 ir::BufferId constant, absl::Span<const AxisPart> parts);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_ANSOR_LOWERING_H_

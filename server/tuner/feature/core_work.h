#ifndef HONE_SERVER_TUNER_FEATURE_CORE_WORK_H_
#define HONE_SERVER_TUNER_FEATURE_CORE_WORK_H_

#include "common/ir/program.h"
#include "server/tuner/feature/analytic_machine.h"
#include "server/tuner/feature/nest.h"

// How the cores of a CPU share the work of a statement.
namespace hone::feature {

// Returns the busiest core's share of all executions of a statement, without those whose predicates
// are false. Tiles that are partly inside count as whole. `body_depth`: the depth of the outermost
// loop of the tile.
double BusiestShare(const ir::Program& program, const Statement& statement, int body_depth,
                    int cores);

// Returns the cycles for lines of the output that other cores take away, over the whole nest: if
// the cores write alternating runs of elements, their prefetchers fetch each other's lines.
double ContentionCycles(const ir::Program& program, const Statement& statement,
                        const AnalyticMachine& machine);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_CORE_WORK_H_

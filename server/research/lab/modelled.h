#ifndef HONE_SERVER_RESEARCH_LAB_MODELLED_H_
#define HONE_SERVER_RESEARCH_LAB_MODELLED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "server/research/lab/sample.h"

// Costs by LLVM's model of a CPU (`hone-builder cost`), for CPUs that no machine here has.
namespace hone::lab {

// Returns the modelled cycles of schedules, which are texts of decided trace files; 0: the code
// generator refuses one. `target`: a name or a text. FailedPrecondition: hone-builder fails; the
// message is its own.
absl::StatusOr<std::vector<double>> ModelCycles(const std::string& program_folder,
                                                const std::string& target,
                                                const std::vector<std::string>& traces);

// As Collect for a CPU that need not be at hand: uniform draws and the first candidates of the
// draft, with modelled costs. A latency is the cycles as if the CPU ran at 1 GHz, and the machine
// says that nothing was timed (record::kModelled).
absl::Status CollectModelled(const CollectOptions& options, const target::Target& target);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_MODELLED_H_

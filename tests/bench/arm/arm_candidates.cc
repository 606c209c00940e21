// Random candidates for cores of ARM: the cycles that the draft expects, and those of LLVM's model
// of the core, one line of JSON each, for draft_order.py.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"
#include "server/tuner/space/generate.h"
#include "worker/compile/llvm/modelled_cost.h"
#include "worker/compile/lower/lower.h"

namespace hone::bench {
namespace {

struct Options {
  std::string core = "arm/cortex-a72";
  std::string op = "matmul m=128 n=128 k=128";
  int candidates = 60;
};

absl::StatusOr<nlohmann::ordered_json> Describe(const ir::Program& program,
                                                const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const codegen::ModelledCost cost, codegen::ModelCost(lowered, target));
  feature::Nest nest;
  HONE_RETURN_IF_ERROR(nest.Analyze(program));
  const feature::AnalyticEstimate estimate =
      feature::EstimateCost(nest, feature::AnalyticMachine::Of(target));
  return nlohmann::ordered_json{{"draft_cycles", estimate.cycles}, {"cost", cost.cycles}};
}

absl::Status PrintCandidates(const Options& options) {
  std::vector<std::string> words = absl::StrSplit(options.op, ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  HONE_ASSIGN_OR_RETURN(ir::Workload built, op::BuildWorkload(name, words));
  HONE_ASSIGN_OR_RETURN(target::Target target, target::TargetByName(options.core));
  target.cores = 1;
  HONE_ASSIGN_OR_RETURN(
      const auto spaces,
      space::GenerateDesignSpaces(std::make_shared<const ir::Workload>(std::move(built)), target));
  int printed = 0;
  for (int i = 0; printed < options.candidates && i < 10 * options.candidates; ++i) {
    const space::DesignSpace& space = *spaces[i % spaces.size()];
    Rng rng(7, i);
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> decisions, space.Sample(rng));
    const absl::StatusOr<ir::Program> program = space.Replay(decisions);
    if (!program.ok()) continue;  // an invalid candidate; tests count these
    absl::StatusOr<nlohmann::ordered_json> line = Describe(*program, target);
    if (!line.ok()) continue;  // the code would exceed a limit
    (*line)["space"] = space.name();
    std::printf("%s\n", line->dump().c_str());
    ++printed;
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  Command app("Prints random candidates with their drafts and their modelled costs.",
              "arm_candidates");
  app.Add("--core", options.core, "Target; one of its cores is used");
  app.Add("--operator", options.op, "Operator with its sizes");
  app.Add("--candidates", options.candidates, "Candidates to print", {Range(1, 100000)});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  const absl::Status status = PrintCandidates(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "arm_candidates: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }

#include <cstdio>
#include <memory>

#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct BestOptions {
  BestWords words;
  bool nearest = false;
};

void PrintMeasured(const client::Best& best) {
  std::printf("latency   %s\n", FormatLatency(best.record.result.latency_ns).c_str());
  std::printf("GFLOP/s   %s (%s of peak)\n", FormatGflops(best.gflops).c_str(),
              FormatShare(best.gflops, best.peak_gflops).c_str());
  std::printf("measured  %s, policy %s, job %s\n\n",
              FormatTime(best.record.created_unix_ms).c_str(), best.record.policy.Key().c_str(),
              best.record.job_id.c_str());
}

void PrintNearest(const client::Nearest& nearest) {
  std::printf("not measured: adapted from the nearest workload that was, and replayed\n");
  std::printf("nearest   distance %.2f, %s there (%s GFLOP/s), job %s\n\n", nearest.distance,
              FormatLatency(nearest.record.result.latency_ns).c_str(),
              FormatGflops(nearest.gflops).c_str(), nearest.record.job_id.c_str());
}

absl::Status ShowBest(const Globals& globals, const BestOptions& options) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, options.words, {.nearest = options.nearest}));
  const client::Best& best = known.best;
  if (globals.json) {
    PrintJson(BestJson(best));
    return absl::OkStatus();
  }
  std::printf("%s on %s\n\n", known.argument.title.c_str(), best.record.target.c_str());
  if (best.nearest.has_value()) {
    PrintNearest(*best.nearest);
  } else {
    PrintMeasured(best);
  }
  std::printf("%s", best.trace.c_str());
  if (!best.trace.empty() && best.trace.back() != '\n') std::printf("\n");
  return absl::OkStatus();
}

}  // namespace

void AddBest(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* command =
      app.add_subcommand("best", "Look up the best schedule that is known; measures nothing");
  auto options = std::make_shared<BestOptions>();
  AddBestWords(*command, options->words);
  command->add_flag("--nearest", options->nearest,
                    "Where none is known, adapt that of the nearest shape of the same operator; it "
                    "is marked as not measured");
  AddGlobals(*command, globals);
  command->footer(
      "Ends with exit code 3 when nothing is known. An adapted schedule was replayed, and neither "
      "built nor checked: hone schedule --check does that.\n\n"
      "Examples:\n"
      "  hone best matmul m=1024 n=1024 k=1024\n"
      "  hone best matmul m=1000 n=1000 k=1000 --nearest\n"
      "  hone --server hone.internal:7070 best mine.hone --json");
  command->callback([&globals, &action, options] {
    action = [&globals, options] { return ShowBest(globals, *options); };
  });
}

}  // namespace hone::cli

#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
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
  absl::PrintF("latency   %s\n", FormatLatency(client::LatencyNs(best)));
  absl::PrintF("GFLOP/s   %s (%s of peak)\n", FormatGflops(best.gflops),
               FormatShare(best.gflops, best.peak_gflops));
  absl::PrintF("measured  %s, policy %s, job %s\n\n", FormatTime(best.record.created_unix_ms),
               best.record.policy.Key(), best.record.job_id);
}

void PrintNearest(const client::Nearest& nearest) {
  absl::PrintF("not measured: adapted from the nearest measured workload, and replayed\n");
  absl::PrintF("nearest   distance %.2f, %s there (%s GFLOP/s), job %s\n\n", nearest.distance,
               FormatLatency(record::SteadyLatencyNs(nearest.record.result)),
               FormatGflops(nearest.gflops), nearest.record.job_id);
}

absl::Status ShowBest(const Globals& globals, const BestOptions& options) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, options.words, {.nearest = options.nearest}));
  const client::Best& best = known.best;
  if (globals.json) return PrintJson(BestJson(best));
  absl::PrintF("%s on %s\n\n", known.argument.title, best.record.target);
  if (best.nearest.has_value()) {
    PrintNearest(*best.nearest);
  } else {
    PrintMeasured(best);
  }
  PrintText(best.trace);
  return absl::OkStatus();
}

}  // namespace

void AddBest(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("best", "Look up the best known schedule, without measuring anything");
  auto options = std::make_shared<BestOptions>();
  AddBestWords(command, options->words);
  command.AddFlag("--nearest", options->nearest,
                  "If none is known, adapt the schedule of the nearest shape of the same operator; "
                  "the output marks it as not measured");
  Complete(command, globals,
           "The exit code is 3 if no schedule is known. An adapted schedule was replayed, but "
           "neither built nor checked; hone schedule --check does both.\n\n"
           "Examples:\n"
           "  hone best matmul m=1024 n=1024 k=1024\n"
           "  hone best matmul m=1000 n=1000 k=1000 --nearest\n"
           "  hone --server hone.internal:7070 best mine.hone --json",
           [&globals, options] { return ShowBest(globals, *options); });
}

}  // namespace hone::cli

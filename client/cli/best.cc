#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/cli/terminal.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct BestOptions {
  BestWords words;
  bool nearest = false;
  bool trace = false;
};

void PrintMeasured(const client::Best& best) {
  absl::PrintF("latency   %s\n", FormatLatency(client::LatencyNs(best)));
  absl::PrintF("GFLOP/s   %s (%s of peak)\n", FormatGflops(best.gflops),
               FormatShare(best.gflops, best.peak_gflops));
  PrintWrapped(absl::StrCat("measured  ", FormatTime(best.record.created_unix_ms), ", policy ",
                            best.record.policy.Key(), ", job ", best.record.job_id),
               "          ");
}

void PrintNearest(const client::Nearest& nearest) {
  PrintWrapped("not measured: adapted from the nearest measured workload, and replayed");
  PrintWrapped(absl::StrFormat("nearest   distance %.2f, %s there (%s GFLOP/s), job %s",
                               nearest.distance,
                               FormatLatency(record::SteadyLatencyNs(nearest.record.result)),
                               FormatGflops(nearest.gflops), nearest.record.job_id),
               "          ");
}

absl::Status ShowBest(const Globals& globals, const BestOptions& options) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, options.words, {.nearest = options.nearest}));
  const client::Best& best = known.best;
  if (globals.json) return PrintJson(BestJson(best));
  PrintWrapped(absl::StrCat(known.argument.title, " on ", best.record.target));
  absl::PrintF("\n");
  if (best.nearest.has_value()) {
    PrintNearest(*best.nearest);
  } else {
    PrintMeasured(best);
  }
  if (options.trace) PrintText(absl::StrCat("\n", best.trace));
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
  command.AddFlag("--trace", options->trace, "Also print the trace of the schedule");
  Complete(command, globals,
           "The exit code is 3 if no schedule is known. An adapted schedule was replayed, but "
           "neither built nor checked; hone schedule --check does both.\n\n"
           "Examples:\n"
           "  hone best matmul m=1024 n=1024 k=1024\n"
           "  hone best matmul m=1000 n=1000 k=1000 --nearest --trace\n"
           "  hone --server hone.internal:7070 best mine.hone --json",
           [&globals, options] { return ShowBest(globals, *options); });
}

}  // namespace hone::cli

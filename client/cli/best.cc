#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct BestOptions {
  std::vector<std::string> words;
  double tolerance = 0;
};

absl::Status ShowBest(const Globals& globals, const BestOptions& options) {
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(options.words));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  const absl::StatusOr<client::Best> best =
      session->connection().LookupBest(argument.text, target, options.tolerance);
  if (absl::IsNotFound(best.status())) {
    return absl::NotFoundError(absl::StrCat("no best is known of ", argument.title, " on ", target,
                                            TuneFirstHint(argument.title)));
  }
  HONE_RETURN_IF_ERROR(best.status());
  if (globals.json) {
    PrintJson(BestJson(*best));
    return absl::OkStatus();
  }
  std::printf("%s on %s\n\n", argument.title.c_str(), best->record.target.c_str());
  std::printf("latency   %s\n", FormatLatency(best->record.result.latency_ns).c_str());
  std::printf("GFLOP/s   %s (%s of peak)\n", FormatGflops(best->gflops).c_str(),
              FormatShare(best->gflops, best->peak_gflops).c_str());
  std::printf("measured  %s, policy %s, job %s\n\n",
              FormatTime(best->record.created_unix_ms).c_str(), best->record.policy.Key().c_str(),
              best->record.job_id.c_str());
  std::printf("%s", best->trace.c_str());
  if (!best->trace.empty() && best->trace.back() != '\n') std::printf("\n");
  return absl::OkStatus();
}

}  // namespace

void AddBest(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* command =
      app.add_subcommand("best", "Look up the best schedule that is known; measures nothing");
  auto options = std::make_shared<BestOptions>();
  AddWorkloadWords(*command, options->words, /*required=*/true);
  command
      ->add_option("--tolerance", options->tolerance,
                   "Tolerance that it was tuned with; 0 (default) is strict")
      ->check(CLI::Range(0.0, 0.5));
  AddGlobals(*command, globals);
  command->footer(
      "Ends with exit code 3 when nothing is known.\n\n"
      "Examples:\n"
      "  hone best matmul m=1024 n=1024 k=1024\n"
      "  hone --server hone.internal:7070 best mine.hone --json");
  command->callback([&globals, &action, options] {
    action = [&globals, options] { return ShowBest(globals, *options); };
  });
}

}  // namespace hone::cli

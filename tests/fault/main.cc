// chaos: the chaos test with options. See --help and README.md.
#include <signal.h>

#include <cstdio>
#include <optional>
#include <string>

#include "common/base/command_line.h"
#include "common/base/file.h"
#include "tests/fault/chaos.h"
#include "tests/fault/report.h"
#include "tests/integration/process.h"

int main(int argc, char** argv) {
  using hone::ShowDefault;
  hone::Command app(
      "Runs a fleet of real processes, lets go wrong what a seed says, and looks whether "
      "everything "
      "holds that must.\nExit codes: 0 it does, 1 it does not, 2 it could not be begun.");
  hone::fault::ChaosOptions options;
  double seconds = 60;
  double settle = 90;
  std::string markdown;
  std::string folder;
  options.talk = true;
  app.Add("--seed", options.schedule.seed, "Of the schedule", {ShowDefault()});
  app.Add("--faults", options.schedule.faults, "How many", {ShowDefault()});
  app.Add("--seconds", seconds, "In which they come", {ShowDefault()});
  app.Add("--settle", settle, "Seconds in which everything must end afterwards", {ShowDefault()});
  app.Add("--trials", options.trials, "Of each job", {ShowDefault()});
  app.AddFlag("--long-faults", options.schedule.long_faults,
              "Some silences outlast the server's patience");
  app.Add("--markdown", markdown, "File for the summary, beside standard output");
  app.Add("--folder", folder, "Where everything is kept; default: a folder that goes");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  signal(SIGPIPE, SIG_IGN);
  options.schedule.length = absl::Seconds(seconds);
  options.settle = absl::Seconds(settle);
  options.last_wish = options.schedule.length;
  const hone::integration::TemporaryFolder temporary;
  const auto report = hone::fault::RunChaos(options, folder.empty() ? temporary.path() : folder);
  if (!report.ok()) {
    std::fprintf(stderr, "chaos: %s\n", report.status().ToString().c_str());
    return 2;
  }
  const std::string text = hone::fault::ToMarkdown(*report);
  std::fputs(text.c_str(), stdout);
  if (!markdown.empty() && !hone::WriteFileAtomically(markdown, text).ok()) {
    std::fprintf(stderr, "chaos: cannot write %s\n", markdown.c_str());
    return 2;
  }
  return report->holds() ? 0 : 1;
}

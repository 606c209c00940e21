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
  using hone::OneOf;
  using hone::ShowDefault;
  hone::Command app(
      "Runs a fleet of real processes, injects the faults that a seed selects, and checks the "
      "invariants.\nExit codes: 0 all invariants hold, 1 one is violated, 2 invalid options, the "
      "fleet could not be started, or the summary could not be written.");
  hone::fault::ChaosOptions options;
  double seconds = 60;
  double settle = 90;
  std::string store = "sqlite";
  std::string markdown;
  std::string folder;
  options.talk = true;
  app.Add("--store", store,
          "sqlite: one server; postgresql: a leader, a standby and a database of their own",
          {ShowDefault(), OneOf({"sqlite", "postgresql"})});
  app.Add("--seed", options.schedule.seed, "Seed of the fault schedule", {ShowDefault()});
  app.Add("--faults", options.schedule.faults, "Number of faults", {ShowDefault()});
  app.Add("--seconds", seconds, "Length of the fault schedule in seconds", {ShowDefault()});
  app.Add("--settle", settle, "Seconds that the jobs may take to end after the last fault",
          {ShowDefault()});
  app.Add("--trials", options.trials, "Trials of each job", {ShowDefault()});
  app.AddFlag("--long-faults", options.schedule.long_faults,
              "Let some stops and outages last longer than the server's timeouts");
  app.Add("--markdown", markdown, "Also write the summary to this file");
  app.Add("--folder", folder,
          "Folder for the store and the programs' output; default: a temporary folder, removed at "
          "the end");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  signal(SIGPIPE, SIG_IGN);
  options.schedule.store =
      store == "sqlite" ? hone::fault::StoreKind::kSqlite : hone::fault::StoreKind::kPostgres;
  options.schedule.length = absl::Seconds(seconds);
  options.settle = absl::Seconds(settle);
  options.last_wish = options.schedule.length;
  const hone::TemporaryFolder temporary;
  const auto report = hone::fault::RunChaos(options, folder.empty() ? temporary.path() : folder);
  if (!report.ok()) {
    std::fprintf(stderr, "chaos: %s\n", report.status().ToString().c_str());
    return 2;
  }
  const std::string text = hone::fault::ToMarkdown(*report);
  std::fputs(text.c_str(), stdout);
  int code = report->holds() ? 0 : 1;
  if (!markdown.empty()) {
    const absl::Status written = hone::WriteFileAtomically(markdown, text);
    if (!written.ok()) {
      std::fprintf(stderr, "chaos: %s\n", std::string(written.message()).c_str());
      if (code == 0) code = 2;
    }
  }
  return code;
}

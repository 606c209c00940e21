#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

struct FeaturesOptions {
  std::string file;
  std::string set;
  bool all = false;
};

// Reads a trace file without open decisions. Errors name the place in the file.
absl::StatusOr<std::string> ReadCandidate(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(std::string text, ReadTextArgument(path));
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (!file.ok())
    return absl::InvalidArgumentError(absl::StrCat(path, ":", file.status().message()));
  const int open = file->parsed.trace.decisions;
  if (file->parsed.decisions.empty() && open > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the trace is a design space, with ", Counted(open, "decision"),
                     " open, but features belong to a single candidate; write the "
                     "decisions after its samplings, as in \"= [16, 64]\""));
  }
  return text;
}

void Print(const v1::FeatureTable& features, bool all) {
  std::vector<Column> columns = {Left("column")};
  for (int r = 0; r < features.rows_size(); ++r) columns.push_back(Right(absl::StrCat("row ", r)));
  Table table(columns);
  int hidden = 0;
  for (int c = 0; c < features.columns_size(); ++c) {
    const bool zero = std::all_of(features.rows().begin(), features.rows().end(),
                                  [&](const v1::FeatureRow& row) { return row.values(c) == 0; });
    if (zero && !all) {
      ++hidden;
      continue;
    }
    std::vector<std::string> cells = {features.columns(c)};
    for (const v1::FeatureRow& row : features.rows()) {
      cells.push_back(absl::StrFormat("%.6g", row.values(c)));
    }
    table.AddRow(std::move(cells));
  }
  PrintWrapped(absl::StrCat(features.feature_set(), " for ", features.target(), ": ",
                            Counted(features.columns_size(), "column"), ", ",
                            Counted(features.rows_size(), "row")));
  absl::PrintF("\n");
  table.Print();
  if (hidden > 0) {
    PrintWrapped(absl::StrCat("\n", Counted(hidden, "column"), hidden == 1 ? " is" : " are",
                              " 0 in every row; --all shows ", hidden == 1 ? "it" : "them"));
  }
  std::fflush(stdout);
}

absl::Status ShowFeatures(const Globals& globals, const FeaturesOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadCandidate(options.file));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetText());
  HONE_ASSIGN_OR_RETURN(const v1::FeatureTable features,
                        session->connection().DescribeFeatures(text, target, options.set));
  if (globals.json) {
    Json rows = Json::array();
    for (const v1::FeatureRow& row : features.rows()) rows.push_back(row.values());
    return PrintJson({{"feature_set", features.feature_set()},
                      {"target", features.target()},
                      {"columns", features.columns()},
                      {"rows", std::move(rows)}});
  }
  Print(features, options.all);
  return absl::OkStatus();
}

}  // namespace

void AddFeatures(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "features", "Show the features of a schedule that cost models read, with column names");
  auto options = std::make_shared<FeaturesOptions>();
  command.Add("file", options->file, "FILE.trace with its decisions; \"-\" reads standard input",
              {Required()});
  command.Add("--set", options->set,
              "Feature set (default statement); the error for an unknown name lists all");
  command.AddFlag("--all", options->all, "Also show the columns that are 0 in every row");
  Complete(command, globals,
           "Needs no worker: features are computed from the schedule and the target, which is this "
           "machine unless --target names another one.\n\n"
           "Examples:\n"
           "  hone show matmul m=512 n=512 k=512 --trace > best.trace && hone features best.trace\n"
           "  hone features best.trace --set curve-fix --json | jq '.columns | length'\n"
           "  hone features best.trace --set analytic --target x86-avx2",
           [&globals, options] { return ShowFeatures(globals, *options); });
}

}  // namespace hone::cli

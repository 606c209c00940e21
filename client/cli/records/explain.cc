#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/explanation.h"
#include "client/cli/records/known_best.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::cli {
namespace {

struct ExplainOptions {
  BestWords words;
  int64_t record = 0;  // 0: not given
};

std::string RatioText(double ratio) { return absl::StrFormat("%.2fx", ratio); }

std::string ChangesText(const v1::TriedSchedule& tried) {
  return absl::StrJoin(
      tried.changes(), "; ", [](std::string* text, const v1::ChangedDecision& change) {
        absl::StrAppend(text, change.name(), ": ", absl::StrJoin(change.after(), ", "),
                        " instead of ", absl::StrJoin(change.before(), ", "));
      });
}

Json TriedJson(const v1::TriedSchedule& tried) {
  Json changes = Json::array();
  for (const v1::ChangedDecision& change : tried.changes()) {
    changes.push_back(
        {{"decision", change.name()},
         {"before", Json(std::vector<int64_t>(change.before().begin(), change.before().end()))},
         {"after", Json(std::vector<int64_t>(change.after().begin(), change.after().end()))}});
  }
  return {{"record", tried.record()},
          {"latency_ns", tried.latency_ns()},
          {"ratio", tried.ratio()},
          {"changes", std::move(changes)}};
}

absl::Status PrintExplanationJson(const v1::Explanation& explanation) {
  const v1::Best& best = explanation.best();
  const ir::Roofline roofline = RooflineOf(explanation);
  Json json = MeasuredJson(best);
  json["workload"] = best.workload();
  json["trace"] = best.trace();
  json["target"] = best.record().id() > 0 ? best.record().target() : explanation.target();
  json["roofline"] = RooflineJson(roofline);
  json["share_of_roofline"] = nullptr;
  if (best.gflops() > 0 && roofline.gflops > 0)
    json["share_of_roofline"] = best.gflops() / roofline.gflops;
  json["limit"] = explanation.terms().empty() ? Json(nullptr) : Json(explanation.terms(0).name());
  json["estimate"] = EstimateJson(explanation);
  json["measured"] = CountersJson(explanation);
  Json near = Json::array();
  for (const v1::TriedSchedule& tried : explanation.near()) near.push_back(TriedJson(tried));
  json["tried"] = {
      {"same_space_count", explanation.same_space()},
      {"other_spaces_count", explanation.other_spaces()},
      {"near_count", explanation.near_count()},
      {"near_failed_count", explanation.near_failed()},
      {"near", std::move(near)},
      {"best_of_others",
       explanation.has_best_of_others() ? TriedJson(explanation.best_of_others()) : Json(nullptr)}};
  return PrintJson(json);
}

void PrintPosition(const v1::Explanation& explanation) {
  const ir::Roofline roofline = RooflineOf(explanation);
  const double gflops = explanation.best().gflops();
  if (!(gflops > 0)) return;
  std::string text = RooflineText(roofline);
  if (roofline.gflops > 0) {
    absl::StrAppend(&text, "; the schedule reaches ", FormatShare(gflops, roofline.gflops),
                    IsAbovePeak(gflops, roofline.gflops) ? " *" : "");
  }
  PrintWrapped(absl::StrCat("\n", text));
  if (IsAbovePeak(gflops, roofline.gflops)) PrintWrapped(kAbovePeakText);
}

void PrintEstimate(const v1::Explanation& explanation) {
  const double cycle_ns = explanation.cycle_ns(), whole = explanation.estimate_cycles();
  if (explanation.terms().empty()) return;
  const v1::EstimateTerm& first = explanation.terms(0);
  PrintWrapped(absl::StrCat("\nlimited by ", first.name(), " (", first.meaning(),
                            "): without them the estimate of ", CyclesText(whole, cycle_ns),
                            " would be ", FormatShare(first.gain(), 1), " shorter"));
  if (explanation.learned()) {
    PrintWrapped("The estimate has factors that were learned from measurements.");
  }
  absl::PrintF("\n");
  Table terms({Left("term"), Right("alone"), Right("would save"), Text("what it is")});
  for (const v1::EstimateTerm& term : explanation.terms()) {
    terms.AddRow({term.name(), CyclesText(term.cycles(), cycle_ns), FormatShare(term.gain(), 1),
                  term.meaning()});
  }
  terms.Print();
  if (explanation.statements_size() < 2) return;
  absl::PrintF("\n");
  Table statements({Left("statement"), Right("estimate"), Right("of all"), Left("limited by")});
  for (const v1::StatementEstimate& statement : explanation.statements()) {
    statements.AddRow({statement.name(), CyclesText(statement.cycles(), cycle_ns),
                       FormatShare(statement.cycles(), whole),
                       statement.limit().empty() ? "-" : statement.limit()});
  }
  statements.Print();
}

void PrintTried(const v1::Explanation& explanation) {
  const int64_t record = explanation.best().record().id();
  if (record == 0) return;
  if (explanation.near().empty()) {
    PrintWrapped(
        absl::StrCat("\nnothing was tried nearby: of ",
                     Counted(explanation.same_space(), "other measured schedule"),
                     " of the same design space, none differs in one or two decisions only"));
  } else {
    PrintWrapped(absl::StrCat(
        "\ntried nearby: of ", Counted(explanation.same_space(), "other measured schedule"),
        " of the same design space, ", explanation.near_count(),
        explanation.near_count() == 1 ? " differs" : " differ", " in one or two decisions",
        explanation.near_count() > explanation.near_size()
            ? absl::StrCat("; these are the fastest ", explanation.near_size())
            : "",
        explanation.near_failed() > 0
            ? absl::StrCat("; ", explanation.near_failed(), " more failed")
            : ""));
    absl::PrintF("\n");
    Table table({Right("time"), Right("latency"), Right("record"), Text("other decisions")});
    bool faster = false;
    for (const v1::TriedSchedule& tried : explanation.near()) {
      faster |= tried.ratio() < 1;
      table.AddRow({RatioText(tried.ratio()), FormatLatency(tried.latency_ns()),
                    absl::StrCat(tried.record()), ChangesText(tried)});
    }
    table.Print();
    if (faster) {
      PrintWrapped(
          "\nA time below 1.00x is of a single measurement. No confirmation showed that the "
          "schedule is faster.");
    }
  }
  if (!explanation.has_best_of_others()) return;
  const v1::TriedSchedule& other = explanation.best_of_others();
  PrintWrapped(absl::StrCat(
      "\nThe fastest of ", Counted(explanation.other_spaces(), "schedule"),
      " of other design spaces takes ", RatioText(other.ratio()), " the time: ",
      SuggestedCommand(absl::StrCat("diff ", record, " ", other.record())), " compares them."));
}

absl::Status PrintExplanation(const Globals& globals, const v1::Explanation& explanation) {
  if (globals.json) return PrintExplanationJson(explanation);
  const v1::Best& best = explanation.best();
  PrintWrapped(
      absl::StrCat(ir::SignatureOfText(best.workload()),
                   best.record().id() > 0 ? absl::StrCat(" on ", best.record().target()) : ""));
  PrintWrapped(MeasuredText(best));
  PrintPosition(explanation);
  PrintEstimate(explanation);
  PrintCounters(explanation);
  PrintTried(explanation);
  return absl::OkStatus();
}

absl::Status ExplainSchedule(const Globals& globals, const ScheduleArgument& argument) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetText());
  HONE_ASSIGN_OR_RETURN(const v1::Explanation explanation,
                        ExplainArgument(*session, argument, target));
  return PrintExplanation(globals, explanation);
}

absl::Status ExplainWords(const Globals& globals, const ExplainOptions& options) {
  const std::vector<std::string>& words = options.words.words;
  if (options.record > 0) return ExplainSchedule(globals, {.record = options.record});
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "nothing to explain: name an operator, a FILE.trace, or a --record");
  }
  WorkloadArgument workload;
  if (NamesFile(words)) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(words[0]));
    if (IsTrace(text)) {
      HONE_ASSIGN_OR_RETURN(const ScheduleArgument argument, ParseScheduleArgument(words[0], text));
      return ExplainSchedule(globals, argument);
    }
    HONE_ASSIGN_OR_RETURN(workload, ParseWorkloadArgument(words[0], text));
  } else {
    HONE_ASSIGN_OR_RETURN(workload, ReadWorkloadArgument(words));
  }
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, std::move(workload), options.words.tolerance));
  HONE_ASSIGN_OR_RETURN(
      const v1::Explanation explanation,
      ExplainArgument(*known.session, {.record = known.best.record().id()}, /*target=*/""));
  return PrintExplanation(globals, explanation);
}

}  // namespace

void AddExplain(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("explain", "Explain why a schedule is as fast as it is, and what lost");
  auto options = std::make_shared<ExplainOptions>();
  AddBestWords(command, options->words, /*required=*/false);
  command.Add("--record", options->record,
              "Explain the schedule of this record instead of the best; hone records query lists "
              "the records",
              {Range(int64_t{1}, INT64_MAX), Excludes("operator")});
  Complete(
      command, globals,
      "Measures nothing. Explains the best known schedule of an operator, or that of a FILE.trace. "
      "The output has four parts:\n\n"
      "The roofline is the upper limit of the device's speed, as in hone compare.\n\n"
      "The estimate is that of the draft, which ranks schedules before they are measured. For "
      "each term, such as the load ports, memory, or the imbalance of the cores, the output has "
      "its cost if nothing else cost anything, and by how much the estimate would shrink without "
      "it. Terms overlap, so these shares do not add up. The term with the largest share is the "
      "limit.\n\n"
      "What was measured are counters of the processor, such as instructions per cycle and misses "
      "of caches, of the runs that confirmed the schedule. If the machine does not let Hone count, "
      "the output says why.\n\n"
      "What was tried nearby are the measured schedules that differ in one or two decisions, with "
      "their time relative to the explained schedule. Both times are of a search, or both of a "
      "confirmation, where the store has both.\n\n"
      "Examples:\n"
      "  hone explain matmul m=1024 n=1024 k=1024\n"
      "  hone explain --record 4711\n"
      "  hone explain kernel/matmul.trace --target x86-avx512\n"
      "  hone explain conv2d n=1 h=56 w=56 ci=64 co=64 k=3 p=1 --json | jq .limit",
      [&globals, options] { return ExplainWords(globals, *options); });
}

}  // namespace hone::cli

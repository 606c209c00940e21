#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/explanation.h"
#include "client/cli/tune/apply_trace.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "common/schedule/named_call.h"

namespace hone::cli {
namespace {

// The number of lines of both texts beyond which they are not aligned: it would take too long.
constexpr size_t kMostPairs = 16 << 20;

// An element of a or of b, or of both.
struct Aligned {
  std::optional<size_t> a, b;
};

// Aligns two lists with as many equal pairs as possible.
std::vector<Aligned> Align(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t begin = 0, end_a = a.size(), end_b = b.size();
  while (begin < end_a && begin < end_b && a[begin] == b[begin]) ++begin;
  while (end_a > begin && end_b > begin && a[end_a - 1] == b[end_b - 1]) --end_a, --end_b;
  const size_t rows = end_a - begin, columns = end_b - begin;
  // common[i][j]: the most pairs of the rests after i and j elements.
  std::vector<int32_t> common;
  const bool aligns = rows * columns <= kMostPairs;
  const auto at = [&](size_t i, size_t j) -> int32_t& { return common[i * (columns + 1) + j]; };
  if (aligns) {
    common.resize((rows + 1) * (columns + 1), 0);
    for (size_t i = rows; i-- > 0;) {
      for (size_t j = columns; j-- > 0;) {
        at(i, j) = a[begin + i] == b[begin + j] ? 1 + at(i + 1, j + 1)
                                                : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  std::vector<Aligned> aligned;
  for (size_t i = 0; i < begin; ++i) aligned.push_back({i, i});
  size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (aligns && i < rows && j < columns && a[begin + i] == b[begin + j]) {
      aligned.push_back({begin + i++, begin + j++});
    } else if (i < rows && (j == columns || !aligns || at(i + 1, j) >= at(i, j + 1))) {
      aligned.push_back({begin + i++, std::nullopt});
    } else {
      aligned.push_back({std::nullopt, begin + j++});
    }
  }
  for (size_t k = 0; end_a + k < a.size(); ++k) aligned.push_back({end_a + k, end_b + k});
  return aligned;
}

// One of the two schedules.
struct Side {
  std::string name;  // "record 12" or the path
  v1::Explanation explanation;
  std::vector<schedule::NamedCall> calls;
  std::vector<std::string> program;  // lines
};

absl::StatusOr<Side> ReadSide(const ScheduleArgument& argument, v1::Explanation explanation) {
  Side side{.name = argument.record > 0 ? absl::StrCat("record ", argument.record) : argument.path,
            .explanation = std::move(explanation)};
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied,
                        ApplyDecidedTrace(side.name, side.explanation.best().trace()));
  HONE_ASSIGN_OR_RETURN(side.calls,
                        schedule::NamedCallsOf(applied.workload, applied.trace, applied.decisions));
  side.program = absl::StrSplit(applied.program.ToText(), '\n', absl::SkipEmpty());
  return side;
}

struct ChangedLine {
  bool added = false;  // in B; otherwise in A
  std::string text;
};

struct Difference {
  std::vector<schedule::ChangedDecision> decisions;
  std::vector<ChangedLine> primitives;
  std::vector<ChangedLine> program;
};

std::vector<ChangedLine> ChangedLines(const std::vector<std::string>& a,
                                      const std::vector<std::string>& b) {
  std::vector<ChangedLine> changed;
  for (const Aligned& pair : Align(a, b)) {
    if (pair.a && pair.b) continue;
    changed.push_back({pair.b.has_value(), pair.a ? a[*pair.a] : b[*pair.b]});
  }
  return changed;
}

// Decisions are compared where both schedules make them for the same use. Those that only one of
// them makes are in the lines of that use.
Difference DifferenceOf(const Side& a, const Side& b) {
  Difference difference{.program = ChangedLines(a.program, b.program)};
  const auto texts = [](const Side& side, bool samples) {
    std::vector<std::string> texts;
    for (const schedule::NamedCall& call : side.calls) {
      if (call.samples == samples) texts.push_back(call.text);
    }
    return texts;
  };
  difference.primitives = ChangedLines(texts(a, false), texts(b, false));
  const auto samplings = [](const Side& side) {
    std::vector<const schedule::NamedCall*> samplings;
    for (const schedule::NamedCall& call : side.calls) {
      if (call.samples) samplings.push_back(&call);
    }
    return samplings;
  };
  const auto of_a = samplings(a), of_b = samplings(b);
  for (const Aligned& pair : Align(texts(a, true), texts(b, true))) {
    const schedule::NamedCall* const before = pair.a ? of_a[*pair.a] : nullptr;
    const schedule::NamedCall* const after = pair.b ? of_b[*pair.b] : nullptr;
    if (before != nullptr && after != nullptr && before->values == after->values) continue;
    difference.decisions.push_back({(before != nullptr ? before : after)->text,
                                    before != nullptr ? before->values : std::vector<int64_t>(),
                                    after != nullptr ? after->values : std::vector<int64_t>()});
  }
  return difference;
}

// The terms of both estimates, those of A first.
std::vector<std::pair<std::string, std::pair<double, double>>> TermsOf(const Side& a,
                                                                       const Side& b) {
  std::vector<std::pair<std::string, std::pair<double, double>>> terms;
  for (const v1::EstimateTerm& term : a.explanation.terms())
    terms.push_back({term.name(), {term.cycles(), 0}});
  for (const v1::EstimateTerm& term : b.explanation.terms()) {
    const auto known = std::ranges::find(terms, term.name(), &decltype(terms)::value_type::first);
    if (known != terms.end()) {
      known->second.second = term.cycles();
    } else {
      terms.push_back({term.name(), {0, term.cycles()}});
    }
  }
  return terms;
}

Json LinesJson(const std::vector<ChangedLine>& lines) {
  Json only_a = Json::array(), only_b = Json::array();
  for (const ChangedLine& line : lines) (line.added ? only_b : only_a).push_back(line.text);
  return {{"only_a", std::move(only_a)}, {"only_b", std::move(only_b)}};
}

Json SideJson(const Side& side) {
  Json json = MeasuredJson(side.explanation.best());
  json["name"] = side.name;
  json["estimate"] = EstimateJson(side.explanation);
  json["trace"] = side.explanation.best().trace();
  return json;
}

absl::Status PrintDifferenceJson(const Side& a, const Side& b, const Difference& difference) {
  Json decisions = Json::array();
  for (const schedule::ChangedDecision& changed : difference.decisions) {
    decisions.push_back({{"decision", changed.text},
                         {"before", Json(changed.before)},
                         {"after", Json(changed.after)}});
  }
  return PrintJson({{"a", SideJson(a)},
                    {"b", SideJson(b)},
                    {"changes", std::move(decisions)},
                    {"primitives", LinesJson(difference.primitives)},
                    {"statements_changed", LinesJson(difference.program)}});
}

void PrintLines(const std::string& title, const std::vector<ChangedLine>& lines) {
  if (lines.empty()) return;
  PrintText(absl::StrCat("\n", title));
  for (const ChangedLine& line : lines)
    PrintText(absl::StrCat(line.added ? "+ " : "- ", line.text));
}

std::string ValuesText(const std::vector<int64_t>& values) {
  return values.empty() ? "-" : absl::StrJoin(values, ", ");
}

absl::Status PrintDifference(const Globals& globals, const Side& a, const Side& b) {
  const Difference difference = DifferenceOf(a, b);
  if (globals.json) return PrintDifferenceJson(a, b, difference);
  const v1::Best &best_a = a.explanation.best(), &best_b = b.explanation.best();
  for (const auto& [mark, side] : {std::pair("A", &a), std::pair("B", &b)}) {
    const v1::Best& best = side->explanation.best();
    PrintWrapped(absl::StrCat(mark, "  ", best.record().id() > 0 ? "" : side->name + ", ",
                              MeasuredText(best), ": ", ir::SignatureOfText(best.workload())),
                 "   ");
  }
  if (best_a.workload() != best_b.workload()) {
    PrintWrapped("\nThe workloads differ, so the latencies cannot be compared.");
  } else if (best_a.has_record() && best_b.has_record() &&
             best_a.record().target() != best_b.record().target()) {
    PrintWrapped(absl::StrCat("\nThe targets differ, ", best_a.record().target(), " and ",
                              best_b.record().target(), ", so the latencies cannot be compared."));
  }
  if (difference.decisions.empty() && difference.primitives.empty()) {
    PrintWrapped("\nThe schedules have the same primitives and the same decisions.");
  }
  if (!difference.decisions.empty()) {
    absl::PrintF("\n");
    Table table({Left("decision"), Right("A"), Right("B")});
    for (const schedule::ChangedDecision& changed : difference.decisions)
      table.AddRow({changed.text, ValuesText(changed.before), ValuesText(changed.after)});
    table.Print();
  }
  PrintLines("primitives", difference.primitives);
  PrintLines("program", difference.program);
  absl::PrintF("\n");
  Table table({Left("estimate"), Right("A"), Right("B"), Right("B / A")});
  const double ns_a = a.explanation.cycle_ns(), ns_b = b.explanation.cycle_ns();
  // Times and cycles cannot be compared.
  const double cycle_ns = ns_a == ns_b ? ns_a : 0;
  const auto add = [&](const std::string& name, double of_a, double of_b) {
    table.AddRow(
        {name, CyclesText(of_a, cycle_ns), CyclesText(of_b, cycle_ns), FormatSpeedUp(of_b, of_a)});
  };
  for (const auto& [name, cycles] : TermsOf(a, b)) add(name, cycles.first, cycles.second);
  add("all, overlapped", a.explanation.estimate_cycles(), b.explanation.estimate_cycles());
  table.AddRow({"measured", FormatLatency(best_a.latency_ns()), FormatLatency(best_b.latency_ns()),
                FormatSpeedUp(best_b.latency_ns(), best_a.latency_ns())});
  table.Print();
  return absl::OkStatus();
}

absl::Status Diff(const Globals& globals, const std::string& word_a, const std::string& word_b) {
  HONE_ASSIGN_OR_RETURN(const ScheduleArgument a, ReadScheduleArgument(word_a));
  HONE_ASSIGN_OR_RETURN(const ScheduleArgument b, ReadScheduleArgument(word_b));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  // A trace is estimated for the target of the record that it is compared with.
  std::string target;
  if (!globals.target.empty() || (a.record == 0 && b.record == 0)) {
    HONE_ASSIGN_OR_RETURN(target, session->TargetText());
  }
  std::map<bool, v1::Explanation> explained;  // by whether it is B
  for (const bool is_b : {a.record == 0, a.record != 0}) {
    HONE_ASSIGN_OR_RETURN(explained[is_b], ExplainArgument(*session, is_b ? b : a, target));
    if (target.empty()) target = explained[is_b].target();
  }
  HONE_ASSIGN_OR_RETURN(const Side side_a, ReadSide(a, std::move(explained[false])));
  HONE_ASSIGN_OR_RETURN(const Side side_b, ReadSide(b, std::move(explained[true])));
  return PrintDifference(globals, side_a, side_b);
}

}  // namespace

void AddDiff(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("diff", "Compare two schedules: decisions, programs, estimates, latencies");
  struct Words {
    std::string a, b;
  };
  auto words = std::make_shared<Words>();
  command.Add("A", words->a, "A record (hone records query lists them) or a FILE.trace",
              {Required()});
  command.Add("B", words->b, "The schedule to compare with it, given in the same way",
              {Required()});
  Complete(
      command, globals,
      "Measures nothing. Lists the decisions that differ, named after the primitive that uses "
      "them: "
      "* is the decision, and _ one of another sampling. Then come the primitives and the lines "
      "of the programs that only A (-) or only B (+) has, the estimates of both by term, as in "
      "hone explain, and the measured latencies. A FILE.trace is estimated for --target or else "
      "for the target of the record that it is compared with.\n\n"
      "Examples:\n"
      "  hone diff 4711 4702\n"
      "  hone diff 4711 mine.trace\n"
      "  hone diff a.trace b.trace --target x86-avx512 --json | jq .changes",
      [&globals, words] { return Diff(globals, words->a, words->b); });
}

}  // namespace hone::cli

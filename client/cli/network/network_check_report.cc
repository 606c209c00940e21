#include "client/cli/network/network_check_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/svg_plot.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"

namespace hone::cli {
namespace {

constexpr size_t kPrintedSteps = 10;

// A step with its time in the baseline, or 0 if the baseline does not have the step.
struct ComparedStep {
  StepSpeed step;
  double baseline_ns = 0;

  double difference_ns() const { return baseline_ns > 0 ? step.latency_ns - baseline_ns : 0; }
  // "-", or "new" as the change, for a step that the baseline does not have.
  std::string BaselineText() const { return baseline_ns > 0 ? FormatLatency(baseline_ns) : "-"; }
  std::string ChangeText() const;
};

std::vector<ComparedStep> CompareSteps(const NetworkSpeed& speed, const NetworkSpeed& baseline) {
  std::map<std::string, double> known;
  for (const StepSpeed& step : baseline.steps) known[step.name] = step.latency_ns;
  std::vector<ComparedStep> compared;
  for (const StepSpeed& step : speed.steps) compared.push_back({step, known[step.name]});
  return compared;
}

// The steps that changed most.
struct MostChanged {
  std::vector<ComparedStep> steps;
  size_t others = 0;  // the number of steps that changed less
};

MostChanged MostChangedSteps(const Comparison& comparison) {
  MostChanged most{.steps = CompareSteps(comparison.timing.speed, comparison.baseline)};
  std::stable_sort(most.steps.begin(), most.steps.end(),
                   [](const ComparedStep& a, const ComparedStep& b) {
                     return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
                   });
  most.others = most.steps.size() - std::min(most.steps.size(), kPrintedSteps);
  most.steps.resize(most.steps.size() - most.others);
  return most;
}

double RegressionOf(double now, double before) { return before > 0 ? now / before - 1 : 0; }

std::string PercentText(double fraction) { return absl::StrFormat("%+.1f %%", 100 * fraction); }

std::string ComparedStep::ChangeText() const {
  return baseline_ns > 0 ? PercentText(RegressionOf(step.latency_ns, baseline_ns)) : "new";
}

bool IsOfNetwork(const Comparison& comparison) { return comparison.timing.what == "network"; }

std::string OthersText(size_t others) {
  return others == 0 ? "" : absl::StrFormat("%d other steps changed less\n", others);
}

void PrintSteps(const Comparison& comparison) {
  const MostChanged most = MostChangedSteps(comparison);
  Table table({Left("step"), Right("baseline"), Right("now"), Right("change"), Left("kernel")});
  for (const ComparedStep& each : most.steps) {
    table.AddRow({each.step.name, each.BaselineText(), FormatLatency(each.step.latency_ns),
                  each.ChangeText(), each.step.kernel});
  }
  absl::PrintF("\n");
  table.Print();
  absl::PrintF("%s", OthersText(most.others));
}

// "whole network  1.2 ms, +3.0 % compared with the baseline (…); at most +5 % is allowed".
std::string SummaryText(const Comparison& comparison) {
  return absl::StrFormat(
      "%s, %s compared with the baseline (%s, of %s); at most +%g %% is allowed",
      MarkUnconfirmed(FormatLatency(comparison.timing.speed.latency_ns),
                      comparison.disturbance.empty()),
      PercentText(comparison.Regression()), FormatLatency(comparison.baseline.latency_ns),
      FormatTime(comparison.baseline.measured_unix_ms), 100 * comparison.max_regression);
}

// The sentences about disturbances of both measurements.
std::vector<std::string> DisturbanceTexts(const Comparison& comparison) {
  std::vector<std::string> texts;
  if (!comparison.disturbance.empty()) {
    texts.push_back(DisturbanceText(comparison.disturbance, comparison.timing.what));
  }
  if (!comparison.baseline.disturbance.empty()) {
    texts.push_back(absl::StrCat(
        "other work disturbed the measurement of the baseline, which may hide a slowdown of the ",
        comparison.timing.what, ": ", comparison.baseline.disturbance));
  }
  return texts;
}

// A text for XML, which has no control characters.
std::string EscapeXml(absl::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n') c = ' ';
  }
  return EscapeHtml(plain);
}

// A text for a cell or a paragraph of Markdown: names of models' nodes may contain anything.
std::string EscapeMarkdown(absl::string_view text) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '\n', ' ');
  return absl::StrReplaceAll(EscapeHtml(plain), {{"|", "\\|"},
                                                 {"\\", "\\\\"},
                                                 {"`", "\\`"},
                                                 {"*", "\\*"},
                                                 {"_", "\\_"},
                                                 {"[", "\\["},
                                                 {"@", "&#64;"}});
}

// What a check has found out, for CI.
struct Verdict {
  const char* junit;  // the element of a test case; "": none
  const char* words;
};

Verdict VerdictOf(const CheckReport& report) {
  if (report.result.ok()) return {"", "passed"};
  if (!report.comparison.has_value()) return {"error", "not compared"};
  if (ExitCodeFor(report.result) == kExitInconclusive) return {"skipped", "inconclusive"};
  return {"failure", "slower"};
}

}  // namespace

double Comparison::Regression() const {
  return RegressionOf(timing.speed.latency_ns, baseline.latency_ns);
}

Json ToJson(const Comparison& comparison, const std::string& path) {
  const NetworkSpeed& baseline = comparison.baseline;
  Json json = TimingJson(comparison.timing, comparison.disturbance);
  json["baseline"] = path;
  json["baseline_latency_ns"] = baseline.latency_ns;
  json["baseline_unix_ms"] = baseline.measured_unix_ms;
  json["baseline_disturbance"] = baseline.disturbance;
  json["regression"] = comparison.Regression();
  json["max_regression"] = comparison.max_regression;
  json["passed"] = comparison.Passes();
  Json steps = Json::array();
  for (const ComparedStep& each : CompareSteps(comparison.timing.speed, baseline)) {
    steps.push_back(
        {{"step", each.step.name},
         {"kernel", each.step.kernel},
         {"latency_ns", each.step.latency_ns},
         {"baseline_latency_ns", each.baseline_ns > 0 ? Json(each.baseline_ns) : Json(nullptr)}});
  }
  json["steps"] = std::move(steps);
  return json;
}

void Print(const Comparison& comparison) {
  PrintWrapped(DescribeMeasured(comparison.timing.speed));
  const bool is_network = IsOfNetwork(comparison);
  if (is_network) PrintSteps(comparison);
  PrintWrapped(
      absl::StrCat("\n", is_network ? "whole network" : "operator", "  ", SummaryText(comparison)));
  for (const std::string& text : DisturbanceTexts(comparison)) PrintWrapped(text);
}

std::string CheckJunit(const CheckReport& report) {
  const Verdict verdict = VerdictOf(report);
  const absl::string_view kind = verdict.junit;
  const auto count = [&](absl::string_view of) { return kind == of ? 1 : 0; };
  std::string name = report.name, time = "0", output;
  if (const auto& comparison = report.comparison; comparison.has_value()) {
    name = DescribeMeasured(comparison->timing.speed);
    time = absl::StrFormat("%.9f", comparison->timing.speed.latency_ns * 1e-9);
    output = absl::StrCat(SummaryText(*comparison), "\n");
    for (const std::string& text : DisturbanceTexts(*comparison)) {
      absl::StrAppend(&output, text, "\n");
    }
    for (const ComparedStep& each : MostChangedSteps(*comparison).steps) {
      if (!IsOfNetwork(*comparison)) break;
      absl::StrAppend(&output, each.step.name, ": ", FormatLatency(each.step.latency_ns), ", ",
                      each.ChangeText(), "\n");
    }
  }
  std::string text = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n"
      "  <testsuite name=\"hone check\" tests=\"1\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" "
      "time=\"%s\">\n"
      "    <testcase classname=\"hone.check\" name=\"%s\" time=\"%s\">\n",
      count("failure"), count("error"), count("skipped"), time, EscapeXml(name), time);
  if (!kind.empty()) {
    absl::StrAppend(&text, "      <", kind, " message=\"", EscapeXml(report.result.message()),
                    "\"/>\n");
  }
  if (!output.empty()) {
    absl::StrAppend(&text, "      <system-out>", EscapeXml(output), "</system-out>\n");
  }
  absl::StrAppend(&text, "    </testcase>\n  </testsuite>\n</testsuites>\n");
  return text;
}

std::string CheckMarkdown(const CheckReport& report) {
  std::string text =
      absl::StrCat("### ", EscapeMarkdown(report.name), ": ", VerdictOf(report).words, "\n\n");
  if (!report.comparison.has_value()) {
    return absl::StrCat(text, EscapeMarkdown(report.result.message()), "\n");
  }
  const Comparison& comparison = *report.comparison;
  absl::StrAppend(&text, "**", SummaryText(comparison), "**\n\n",
                  EscapeMarkdown(DescribeMeasured(comparison.timing.speed)), "\n");
  for (const std::string& each : DisturbanceTexts(comparison)) {
    absl::StrAppend(&text, "\n> ", EscapeMarkdown(each), "\n");
  }
  if (!IsOfNetwork(comparison)) return text;
  const MostChanged most = MostChangedSteps(comparison);
  absl::StrAppend(&text, "\n| step | baseline | now | change | kernel |\n",
                  "|---|--:|--:|--:|---|\n");
  for (const ComparedStep& each : most.steps) {
    absl::StrAppend(&text, "| ", EscapeMarkdown(each.step.name), " | ", each.BaselineText(), " | ",
                    FormatLatency(each.step.latency_ns), " | ", each.ChangeText(), " | ",
                    EscapeMarkdown(each.step.kernel), " |\n");
  }
  if (most.others > 0) absl::StrAppend(&text, "\n", OthersText(most.others));
  return text;
}

}  // namespace hone::cli

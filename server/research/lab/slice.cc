#include "server/research/lab/slice.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "server/research/lab/tune_process.h"
#include "server/tuner/search/site_values.h"

namespace hone::lab {
namespace {

constexpr double kSliceNoise = 1.03;  // smaller ratios of latencies say nothing
constexpr size_t kMostSliceValues = 256, kMostSliceTrials = 2000;

// Runs `hone tune` in a folder of its own, unless it has ended there before with the same words and
// the same texts of the files that they name. Returns the path of its store.
absl::StatusOr<std::string> TuneInFolder(const SliceOptions& options, const std::string& name,
                                         std::vector<std::string> words,
                                         absl::Span<const std::string> files) {
  const std::string folder = absl::StrCat(options.out, "/", name), ended = folder + "/ended";
  std::string key = absl::StrJoin(words, " ");
  for (const std::string& text : files) absl::StrAppend(&key, " ", DigestOf(text).ToHex());
  const absl::StatusOr<std::string> before = ReadFile(ended);
  if (!before.ok() || *before != key) {
    // A search continues with the results of its store, so it begins with none. Without `ended`, an
    // interrupted run is repeated.
    for (const std::string& path : {ended, folder + "/hone"}) {
      std::error_code error;
      std::filesystem::remove_all(path, error);
      if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot remove ", path));
    }
    HONE_RETURN_IF_ERROR(MakeDirectories(folder));
    HONE_RETURN_IF_ERROR(RunTune({.program_folder = options.program_folder,
                                  .data_folder = folder,
                                  .words = std::move(words),
                                  .interrupt_at = "confirming"})
                             .status());
    HONE_RETURN_IF_ERROR(WriteFileAtomically(ended, key));
  }
  return folder + "/hone/hone.db";
}

double LatencyOfResult(const StoreResult& result) {
  return result.record.result.outcome == record::Outcome::kOk
             ? record::SteadyLatencyNs(result.record.result)
             : 0;
}

// The instruction that draws a decision.
const schedule::Instruction& InstructionOf(const schedule::Trace& trace, int decision) {
  return *absl::c_find_if(trace.instructions, [&](const schedule::Instruction& each) {
    return each.decision_count > 0 && each.decision_begin == decision;
  });
}

std::string LineOfInstruction(const schedule::Trace& trace, int decision) {
  const auto number = &InstructionOf(trace, decision) - trace.instructions.data();
  const std::string text = trace.ToText();
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  return std::string(lines[static_cast<size_t>(number)]);
}

// The number of the site in `sites`, or why there is none.
absl::StatusOr<size_t> ChooseSite(const std::vector<schedule::Site>& sites, int wanted,
                                  const schedule::Trace& trace, search::SiteValues& lists) {
  size_t most = 0, chosen = 0;
  std::string known;
  for (size_t s = 0; s < sites.size(); ++s) {
    const size_t count = lists.Count(sites[s]);
    absl::StrAppend(&known, "\n", s, ": ", LineOfInstruction(trace, sites[s].begin), "  (", count,
                    " values)");
    const bool is_better = wanted >= 0 ? static_cast<int>(s) == wanted : count > most;
    if (is_better && count <= kMostSliceValues) most = count, chosen = s;
  }
  if (most > 1) return chosen;
  return absl::InvalidArgumentError(absl::StrCat(
      wanted >= 0 ? absl::StrCat("decision ", wanted) : "no decision of the best schedule",
      " has 2 to ", kMostSliceValues, " values; its decisions:", known));
}

std::string TextOfValue(const SliceValue& value) { return absl::StrJoin(value.decisions, "×"); }

}  // namespace

schedule::Trace WithOneOpen(const schedule::Trace& trace, absl::Span<const int64_t> decisions,
                            int open) {
  const schedule::Primitive* const categorical = schedule::FindPrimitive("sample_categorical");
  schedule::Trace narrowed = trace;
  narrowed.instructions.clear();
  narrowed.decisions = 0;
  const auto add = [&](schedule::Instruction instruction) {
    if (instruction.decision_count > 0) {
      instruction.decision_begin = narrowed.decisions;
      narrowed.decisions += instruction.decision_count;
    }
    narrowed.instructions.push_back(std::move(instruction));
  };
  for (const schedule::Instruction& instruction : trace.instructions) {
    const bool draws_numbers =
        instruction.decision_count > 0 && absl::c_all_of(instruction.results, [](const auto& each) {
          return each.kind == schedule::Operand::Kind::kInt;
        });
    if (!draws_numbers || instruction.decision_begin == open) {
      add(instruction);
      continue;
    }
    for (int i = 0; i < instruction.decision_count; ++i) {
      const int64_t value = decisions[static_cast<size_t>(instruction.decision_begin) + i];
      add({.primitive = categorical,
           .attributes = {{"candidates", {value}}},
           .results = {instruction.results[static_cast<size_t>(i)]},
           .decision_count = 1});
    }
  }
  return narrowed;
}

Roughness RoughnessOf(const Slice& slice) {
  std::vector<double> latencies;
  for (const SliceValue& value : slice.values)
    if (value.latency_ns > 0) latencies.push_back(value.latency_ns);
  Roughness rough{.values = static_cast<int>(latencies.size())};
  if (latencies.size() < 2) return rough;
  rough.spread = *absl::c_max_element(latencies) / *absl::c_min_element(latencies);
  std::vector<double> steps;
  for (size_t i = 1; i < latencies.size(); ++i) {
    const auto is_below = [&](size_t other) {
      return latencies[i] * kSliceNoise < latencies[other];
    };
    if (i + 1 < latencies.size() && is_below(i - 1) && is_below(i + 1)) ++rough.minima;
    const double ratio = latencies[i] / latencies[i - 1];
    steps.push_back(std::max(ratio, 1 / ratio));
  }
  rough.step = Median(steps);
  rough.largest = *absl::c_max_element(steps);
  return rough;
}

std::string SliceText(const Slice& slice) {
  const Roughness rough = RoughnessOf(slice);
  double best_ns = 0;
  for (const SliceValue& value : slice.values) {
    if (value.latency_ns > 0 && (best_ns == 0 || value.latency_ns < best_ns))
      best_ns = value.latency_ns;
  }
  std::string text = absl::StrFormat(
      "## %s\n\nThe decision `%s`, all others as in the best schedule of a search, which has "
      "%s.\n%d of its %d values run; the slowest takes %.2f times as long as the fastest. "
      "Neighbours differ by a factor of %.2f in the median and %.2f at most, and %d\nof the values "
      "between the ends are faster than both neighbours by more than 3 %%.\n\n| position | value | "
      "µs | over the fastest |\n|---|---|---|---|\n",
      slice.task, slice.decision, TextOfValue(slice.values[slice.chosen]), rough.values,
      slice.values.size(), rough.spread, rough.step, rough.largest, rough.minima);
  for (size_t i = 0; i < slice.values.size(); ++i) {
    const SliceValue& value = slice.values[i];
    if (value.latency_ns > 0) {
      absl::StrAppendFormat(&text, "| %d | %s | %.1f | %.2f |\n", i, TextOfValue(value),
                            value.latency_ns / 1e3, value.latency_ns / best_ns);
    } else {
      absl::StrAppendFormat(&text, "| %d | %s | – | – |\n", i, TextOfValue(value));
    }
  }
  return text;
}

std::string SliceSvg(const Slice& slice) {
  constexpr double kWidth = 720, kHeight = 260, kLeft = 60, kTop = 20, kBottom = 40;
  double least = 0, most = 0;
  for (const SliceValue& value : slice.values) {
    if (value.latency_ns == 0) continue;
    least = least == 0 ? value.latency_ns : std::min(least, value.latency_ns);
    most = std::max(most, value.latency_ns);
  }
  const double range = std::max(std::log(most / least), 1e-9);
  const auto x = [&](size_t i) {
    const auto last = static_cast<double>(std::max<size_t>(slice.values.size() - 1, 1));
    return kLeft + (kWidth - kLeft - 20) * static_cast<double>(i) / last;
  };
  const auto y = [&](double latency_ns) {
    return kTop + (kHeight - kTop - kBottom) * std::log(most / latency_ns) / range;
  };
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n<text x=\"%.0f\" y=\"14\">%s: latency along one decision</text>\n",
      kWidth, kHeight, kLeft, slice.task);
  if (least == 0) return text + "</svg>\n";
  for (const double latency_ns : {least, std::sqrt(least * most), most}) {
    absl::StrAppendFormat(
        &text,
        "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n<text x=\"%.0f\" "
        "y=\"%.1f\" text-anchor=\"end\">%.4g µs</text>\n",
        kLeft, kWidth - 20, y(latency_ns), y(latency_ns), kLeft - 4, y(latency_ns) + 4,
        latency_ns / 1e3);
  }
  std::vector<std::string> line;
  for (size_t i = 0; i < slice.values.size(); ++i) {
    const double latency_ns = slice.values[i].latency_ns;
    if (latency_ns > 0) line.push_back(absl::StrFormat("%.1f,%.1f", x(i), y(latency_ns)));
  }
  absl::StrAppend(&text, "<polyline fill=\"none\" stroke=\"#9bc\" points=\"",
                  absl::StrJoin(line, " "), "\"/>\n");
  for (size_t i = 0; i < slice.values.size(); ++i) {
    const SliceValue& value = slice.values[i];
    if (value.latency_ns == 0) continue;
    absl::StrAppendFormat(&text,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>%s: %.1f "
                          "µs</title></circle>\n",
                          x(i), y(value.latency_ns), i == slice.chosen ? 5 : 2,
                          i == slice.chosen ? "#c33" : "#258", TextOfValue(value),
                          value.latency_ns / 1e3);
  }
  absl::StrAppendFormat(&text,
                        "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n<text x=\"%.0f\" y=\"%.0f\" "
                        "text-anchor=\"end\">%s</text>\n</svg>\n",
                        kLeft, kHeight - 14, TextOfValue(slice.values.front()), kWidth - 20,
                        kHeight - 14, TextOfValue(slice.values.back()));
  return text;
}

absl::StatusOr<Slice> MeasureSlice(const SliceOptions& options) {
  std::vector<std::string> words = absl::StrSplit(options.task, ' ');
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload,
                        op::BuildWorkload(words[0], absl::MakeConstSpan(words).subspan(1)));
  HONE_RETURN_IF_ERROR(MakeDirectories(options.out));
  const std::string file = options.out + "/workload.hone";
  const std::string text = workload.ToText();
  HONE_RETURN_IF_ERROR(WriteFileAtomically(file, text));
  HONE_ASSIGN_OR_RETURN(
      const std::string searched,
      TuneInFolder(options, "search",
                   {file, "--trials", absl::StrCat(options.trials), "--seed", "1"}, {text}));
  HONE_ASSIGN_OR_RETURN(const std::vector<StoreResult> results, ReadStoreResults(searched));
  const StoreResult* best = nullptr;
  for (const StoreResult& result : results) {
    const double latency_ns = LatencyOfResult(result);
    if (latency_ns > 0 && (best == nullptr || latency_ns < LatencyOfResult(*best))) best = &result;
  }
  if (best == nullptr) return absl::NotFoundError("no schedule of the search ran");
  const std::vector<int64_t>& decisions = best->record.candidate.decisions;
  std::unique_ptr<space::DesignSpace> space;
  {
    HONE_ASSIGN_OR_RETURN(const auto store, OpenStoreOfEndedServer(searched));
    HONE_ASSIGN_OR_RETURN(const std::string known,
                          store->GetText(best->record.candidate.space_digest));
    HONE_ASSIGN_OR_RETURN(space, space::DesignSpace::FromText(known));
  }
  search::SiteValues lists;
  HONE_ASSIGN_OR_RETURN(const std::vector<schedule::Site> sites, space->Sites(decisions));
  HONE_ASSIGN_OR_RETURN(const size_t chosen,
                        ChooseSite(sites, options.site, space->trace(), lists));
  const schedule::Site& site = sites[chosen];
  Slice slice{.task = options.task, .decision = LineOfInstruction(space->trace(), site.begin)};
  const auto of_site = [&](absl::Span<const int64_t> all) {
    const auto part = all.subspan(static_cast<size_t>(site.begin), static_cast<size_t>(site.count));
    return std::vector<int64_t>(part.begin(), part.end());
  };
  slice.chosen = lists.IndexOf(site, of_site(decisions));
  for (size_t i = 0; i < lists.Count(site); ++i) {
    const absl::Span<const int64_t> value = lists.At(site, i);
    slice.values.push_back({.decisions = {value.begin(), value.end()}});
  }
  const std::string trace = options.out + "/slice.trace";
  const std::string trace_text = schedule::TraceFileText(
      *space->workload(), WithOneOpen(space->trace(), decisions, site.begin));
  HONE_RETURN_IF_ERROR(WriteFileAtomically(trace, trace_text));
  // Locations stay open, and all of their values are measured, too.
  size_t trials = slice.values.size();
  for (const schedule::Site& other : sites) {
    const schedule::Instruction& draws = InstructionOf(space->trace(), other.begin);
    if (draws.results[0].kind == schedule::Operand::Kind::kLoop) trials *= lists.Count(other);
  }
  trials = std::min(trials, kMostSliceTrials);
  HONE_ASSIGN_OR_RETURN(
      const std::string measured,
      TuneInFolder(options, absl::StrCat("slice", chosen),
                   {file, "--space", absl::StrCat("trace:", trace), "--strategy", "grid",
                    "--cost-model", "random", "--trials", absl::StrCat(trials), "--seed", "1"},
                   {text, trace_text}));
  HONE_ASSIGN_OR_RETURN(const std::vector<StoreResult> all, ReadStoreResults(measured));
  std::map<std::vector<int64_t>, double> latencies;
  for (const StoreResult& result : all) {
    std::vector<int64_t> others = result.record.candidate.decisions;
    const std::vector<int64_t> value = of_site(others);
    std::copy_n(decisions.begin() + site.begin, site.count, others.begin() + site.begin);
    if (others == decisions) latencies[value] = LatencyOfResult(result);
  }
  for (SliceValue& value : slice.values) value.latency_ns = latencies[value.decisions];
  HONE_RETURN_IF_ERROR(WriteFileAtomically(options.out + "/slice.md", SliceText(slice)));
  HONE_RETURN_IF_ERROR(WriteFileAtomically(options.out + "/slice.svg", SliceSvg(slice)));
  return slice;
}

}  // namespace hone::lab

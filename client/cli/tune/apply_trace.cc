#include "client/cli/tune/apply_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/counted.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/schedule/replay.h"

namespace hone::cli {
namespace {

// How many times open decisions are drawn if primitives refuse them.
constexpr uint64_t kDraws = 64;

// Returns given decisions. The trace may be a prefix of the one that they belong to.
class GivenDecisions final : public schedule::Decider {
 public:
  explicit GivenDecisions(const std::vector<int64_t>& decisions) : decisions_(decisions) {}
  absl::Status Decide(const schedule::Site& site, absl::Span<int64_t> values) override {
    std::copy_n(decisions_.begin() + site.begin, site.count, values.begin());
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t>& decisions_;
};

// Draws random decisions and records them, even if the replay is refused later.
class Drawing final : public schedule::Decider {
 public:
  Drawing(Rng& rng, std::vector<int64_t>& drawn) : random_(rng), drawn_(drawn) {}
  absl::Status Decide(const schedule::Site& site, absl::Span<int64_t> values) override {
    HONE_RETURN_IF_ERROR(random_.Decide(site, values));
    std::copy(values.begin(), values.end(), drawn_.begin() + site.begin);
    return absl::OkStatus();
  }

 private:
  schedule::RandomDecider random_;
  std::vector<int64_t>& drawn_;
};

schedule::Trace Beginning(const schedule::Trace& trace, size_t instructions) {
  schedule::Trace beginning = trace;
  beginning.instructions.resize(instructions);
  return beginning;
}

// The numbers of the lines that contain instructions.
std::vector<int> InstructionLines(const std::string& text) {
  std::vector<int> lines;
  int number = 0;
  bool in_trace = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (in_trace && !content.empty() && content[0] != '#') lines.push_back(number);
    in_trace = in_trace || schedule::IsTraceHeader(content);
  }
  return lines;
}

// The error of the first instruction that is refused, with its line in the file.
absl::Status Refusal(const std::string& path, const AppliedTrace& applied,
                     const absl::Status& why) {
  GivenDecisions decider(applied.decisions);
  for (size_t i = 1; i <= applied.lines.size(); ++i) {
    const schedule::Trace beginning = Beginning(applied.trace, i);
    if (schedule::ReplayWith(applied.workload, beginning, decider).ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", applied.lines[i - 1], ":1: ", why.message()));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why.message()));
}

}  // namespace

std::string AppliedTrace::Text() const {
  return schedule::TraceFileText(*workload, trace, decisions);
}

absl::StatusOr<AppliedTrace> ApplyTrace(const std::string& path, const std::string& text,
                                        uint64_t seed) {
  absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (!file.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", file.status().message()));
  }
  auto workload = std::make_shared<const ir::Workload>(std::move(file->workload));
  AppliedTrace applied{.workload = workload,
                       .trace = std::move(file->parsed.trace),
                       .decisions = std::move(file->parsed.decisions),
                       .program = ir::Program::FromWorkload(workload),
                       .lines = InstructionLines(text)};
  const bool open = applied.decisions.empty() && applied.trace.decisions > 0;
  applied.decisions.resize(applied.trace.decisions, 0);
  absl::Status refused;
  for (uint64_t draw = 0; draw < (open ? kDraws : 1); ++draw) {
    Rng rng(seed, draw);
    Drawing drawing(rng, applied.decisions);
    GivenDecisions given(applied.decisions);
    schedule::Decider& decider =
        open ? static_cast<schedule::Decider&>(drawing) : static_cast<schedule::Decider&>(given);
    absl::StatusOr<schedule::Replayed> replayed =
        schedule::ReplayWith(workload, applied.trace, decider);
    if (replayed.ok()) {
      applied.program = std::move(replayed->program);
      return applied;
    }
    refused = replayed.status();
  }
  return Refusal(path, applied, refused);
}

absl::StatusOr<AppliedTrace> ApplyDecidedTrace(const std::string& path, const std::string& text) {
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (file.ok() && file->parsed.decisions.empty() && file->parsed.trace.decisions > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the trace is a design space, with ",
                     Counted(file->parsed.trace.decisions, "decision"),
                     " open; write the decisions after its samplings, as in \"= [16, 64]\""));
  }
  return ApplyTrace(path, text, /*seed=*/0);
}

absl::StatusOr<std::vector<TraceStep>> StepsOf(const AppliedTrace& applied) {
  const std::vector<std::string> texts =
      absl::StrSplit(applied.trace.ToText(applied.decisions), '\n');
  std::vector<TraceStep> steps;
  GivenDecisions decider(applied.decisions);
  for (size_t i = 0; i <= applied.lines.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(
        const schedule::Replayed state,
        schedule::ReplayWith(applied.workload, Beginning(applied.trace, i), decider));
    steps.push_back({.line = i == 0 ? 0 : applied.lines[i - 1],
                     .instruction = i == 0 ? "" : texts[i - 1],
                     .program = state.program.ToText()});
  }
  return steps;
}

}  // namespace hone::cli

// A trace file is refused or can be read back. Its replay fails or gives a program; the canonical
// text gives the same program, whose text can be read back.
#include "common/base/rng.h"
#include "common/schedule/replay.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/oracles/program_parser.h"

namespace {

// Whether a replay failed with one of the expected codes.
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsNotFound(status) || absl::IsUnimplemented(status);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  auto file = schedule::ParseTraceFile(fuzz::TextOf(data, size));
  if (!file.ok()) {
    fuzz::Require(absl::IsInvalidArgument(file.status()), "a refusal is InvalidArgument",
                  file.status().ToString());
    return 0;
  }
  const auto workload = std::make_shared<const ir::Workload>(std::move(file->workload));
  const schedule::Trace& trace = file->parsed.trace;
  std::vector<int64_t> decisions = file->parsed.decisions;
  if (decisions.empty() && trace.decisions > 0) {
    Rng rng(size);
    schedule::RandomDecider decider(rng);
    auto replayed = schedule::ReplayWith(workload, trace, decider);
    if (!replayed.ok()) {
      fuzz::Require(IsRefusal(replayed.status()), "a refusal tells its kind",
                    replayed.status().ToString());
      return 0;
    }
    decisions = std::move(replayed->decisions);
  }
  const std::string text = schedule::TraceFileText(*workload, trace, decisions);
  const auto again = schedule::ParseTraceFile(text);
  fuzz::Require(again.ok(), "what is printed is read", again.status().ToString());
  fuzz::Require(again->parsed.decisions == decisions &&
                    again->parsed.trace.instructions == trace.instructions,
                "it reads back as the same trace", text);
  const auto program = schedule::Replay(workload, trace, decisions);
  if (!program.ok()) {
    fuzz::Require(IsRefusal(program.status()), "a refusal tells its kind",
                  program.status().ToString());
    return 0;
  }
  const auto same = schedule::Replay(std::make_shared<const ir::Workload>(again->workload),
                                     again->parsed.trace, again->parsed.decisions);
  fuzz::Require(same.ok() && same->StructuralDigest() == program->StructuralDigest(),
                "a trace gives one program", text);
  const std::string printed = program->ToText();
  if (printed.size() > ir::kMaxProgramTextBytes) return 0;
  const auto parsed = ir::ParseProgram(program->shared_workload(), printed);
  fuzz::Require(parsed.ok(), "the program's text is read",
                parsed.status().ToString() + "\n" + printed);
  fuzz::Require(parsed->StructuralDigest() == program->StructuralDigest(),
                "the program's text reads back as the same program", printed);
  return 0;
}

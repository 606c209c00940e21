// A line of another system's log is refused or gives a record. A replayed schedule is a trace of
// the record's workload.
#include <memory>

#include "client/cli/dataset/foreign_log.h"
#include "common/schedule/replay.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const auto line = cli::ParseForeignLine(fuzz::TextOf(data, size));
  if (!line.ok()) return 0;
  for (const cli::ForeignFormat& format : cli::ForeignFormats()) {
    if (!format.recognizes(*line)) continue;
    const auto record = format.parse(*line, {});
    if (!record.ok()) {
      fuzz::Require(absl::IsInvalidArgument(record.status()), "a refusal is InvalidArgument",
                    record.status().ToString());
      return 0;
    }
    fuzz::Require(record->trace.empty() != record->reason.empty(),
                  "a record is replayed or has a reason", record->reason);
    const std::string space = cli::ForeignSpace(format.name, *record);
    fuzz::Require(cli::ReasonOfForeignSpace(space) == record->reason, "the reason reads back",
                  space);
    if (record->trace.empty()) return 0;
    auto file = schedule::ParseTraceFile(record->trace);
    fuzz::Require(file.ok() && file->workload.ToText() == record->workload,
                  "a replayed schedule is a trace of the workload", record->trace);
    const auto program =
        schedule::Replay(std::make_shared<const ir::Workload>(std::move(file->workload)),
                         file->parsed.trace, file->parsed.decisions);
    fuzz::Require(program.ok(), "the trace can be applied", record->trace);
    return 0;
  }
  return 0;
}

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"

namespace hone::cli {
namespace {

// Returns the pin of a record, or null if it is not pinned.
const v1::Best* PinOf(const record::Record& record, const std::vector<v1::Best>& pins) {
  const auto pin = std::find_if(pins.begin(), pins.end(), [&](const v1::Best& each) {
    return each.record().id() == record.id;
  });
  return pin == pins.end() ? nullptr : &*pin;
}

Json BestsJson(absl::Span<const record::Record> bests, const std::vector<v1::Best>& pins) {
  Json list = Json::array();
  for (const record::Record& best : bests) {
    const v1::Best* const pin = PinOf(best, pins);
    Json json = ToJson(best);
    json["pinned"] = pin == nullptr ? Json(nullptr) : PinnedJson(*pin);
    list.push_back(std::move(json));
  }
  return list;
}

absl::Status Forget(const Globals& globals, const BestWords& words) {
  HONE_ASSIGN_OR_RETURN(const NamedTask named, OpenTask(globals, words));
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Best> pins, named.session->connection().ListPins());
  const absl::StatusOr<v1::ForgetRecordsResponse> forgotten =
      named.session->connection().ForgetRecords(named.task);
  if (absl::IsNotFound(forgotten.status())) {
    return NothingKnownError(absl::StrCat("nothing is known of ", named.Title()));
  }
  HONE_RETURN_IF_ERROR(forgotten.status());
  std::vector<record::Record> bests;  // the published bests that were withdrawn
  for (const v1::Record& message : forgotten->bests()) {
    HONE_ASSIGN_OR_RETURN(bests.emplace_back(), record::FromProto(message));
  }
  if (globals.json) {
    return PrintJson({{"workload", named.argument.text},
                      {"target", named.task.target},
                      {"tolerance", named.task.tolerance},
                      {"record_count", forgotten->records()},
                      {"bests", BestsJson(bests, pins)}});
  }
  PrintWrapped(
      absl::StrCat("forgot ", Counted(forgotten->records(), "record"), " of ", named.Title()));
  for (const record::Record& best : bests) {
    const v1::Best* const pin = PinOf(best, pins);
    PrintWrapped(absl::StrCat("no longer the best: record ", best.id, ", ",
                              FormatLatency(record::SteadyLatencyNs(best.result)), ", measured ",
                              FormatTime(best.created_unix_ms), ", job ", best.job_id));
    if (pin != nullptr) {
      PrintWrapped(absl::StrCat("it was ", PinText(*pin), "; the pin is removed"));
    }
  }
  if (bests.empty()) absl::PrintF("none of them was a published best\n");
  return absl::OkStatus();
}

}  // namespace

void AddForget(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("forget", "Forget what is known of an operator, so that tuning starts fresh");
  auto words = std::make_shared<BestWords>();
  AddBestWords(command, *words);
  Complete(command, globals,
           "The records of the operator on the target, with this tolerance, are quarantined with "
           "a reason that says who forgot them and when. The published best is withdrawn, with its "
           "pin. The records stay in the store: hone records query --quarantined lists them. "
           "Nothing is learnt from them any more, but cost models that were trained and stored "
           "before stay as they are.\n\n"
           "An operator that a job measures cannot be forgotten: wait for the job, or cancel it. "
           "A cancelled job that is resumed later knows its own measurements, and confirms its "
           "best again.\n\n"
           "The exit code is 3 if nothing is known. A server with authentication asks for the "
           "role admin.\n\n"
           "Examples:\n"
           "  hone forget matmul m=1024 n=1024 k=1024\n"
           "  hone forget mine.hone --tolerance 1e-5 --json",
           [&globals, words] { return Forget(globals, *words); });
}

}  // namespace hone::cli

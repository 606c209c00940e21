#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/suggested_command.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::cli {
namespace {

struct PinOptions {
  BestWords words;
  int64_t record = 0;  // 0: the published best
  bool remove = false;
};

absl::Status ListPins(const Globals& globals) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Best> pins, session->connection().ListPins());
  std::erase_if(pins, [&](const v1::Best& pin) {
    return !target.empty() && pin.record().target() != target;
  });
  if (globals.json) {
    Json list = Json::array();
    for (const v1::Best& pin : pins) list.push_back(PinJson(pin));
    return PrintJson({{"pins", std::move(list)}});
  }
  Table table({Right("record"), Left("operator"), Left("workload"), Left("target"),
               Right("tolerance"), Right("latency"), Left("pinned by"), Left("since")});
  for (const v1::Best& pin : pins) {
    table.AddRow({absl::StrCat(pin.record().id()), pin.record().operator_(),
                  ir::SignatureOfText(pin.workload()), pin.record().target(),
                  absl::StrCat(pin.record().tolerance()), FormatLatency(pin.latency_ns()),
                  pin.pinned_by().empty() ? "-" : pin.pinned_by(),
                  FormatTime(pin.pinned_unix_ms())});
  }
  table.Print(FromServer("no best is pinned"));
  return absl::OkStatus();
}

absl::Status Unpin(const Globals& globals, const NamedTask& named) {
  const absl::Status removed = named.session->connection().UnpinBest(named.task);
  if (absl::IsNotFound(removed)) {
    return NothingKnownError(absl::StrCat("the best of ", named.Title(), " is not pinned"));
  }
  HONE_RETURN_IF_ERROR(removed);
  if (globals.json) {
    return PrintJson({{"workload", named.argument.text},
                      {"target", named.task.target},
                      {"tolerance", named.task.tolerance},
                      {"pinned", nullptr}});
  }
  PrintWrapped(absl::StrCat("the best of ", named.Title(), " is no longer pinned"));
  return absl::OkStatus();
}

// Adds advice to the error of a pin.
absl::Status Explain(const absl::Status& status, const NamedTask& named, int64_t record) {
  const std::string operation =
      absl::StrCat(named.argument.words, ToleranceOption(named.task.tolerance));
  if (absl::IsNotFound(status) && record == 0) {
    return NothingKnownError(absl::StrCat(
        "no schedule is known for ", named.Title(),
        HowToFind(*named.session, named.task.target, named.task.tolerance, named.argument)));
  }
  if (!absl::IsFailedPrecondition(status) || record == 0) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      status.message(),
      "; only a confirmed record whose kernel is in the store, such as a former best, can be "
      "pinned. For another schedule: ",
      SuggestedCommandForTarget("forget " + operation), ", then ",
      SuggestedMeasurement(absl::StrCat("tune ", operation, " --space trace:FILE")), ", then ",
      SuggestedCommandForTarget("pin " + operation)));
}

absl::Status Pin(const Globals& globals, const PinOptions& options) {
  if (options.words.words.empty()) {
    const bool strict = options.words.tolerance == 0;
    if (!options.remove && options.record == 0 && strict) return ListPins(globals);
    return absl::InvalidArgumentError(
        absl::StrCat(options.remove        ? "--remove"
                     : options.record != 0 ? "--record"
                                           : "--tolerance",
                     " needs an operator, such as matmul m=512 n=512 k=512"));
  }
  HONE_ASSIGN_OR_RETURN(const NamedTask named, OpenTask(globals, options.words));
  if (options.remove) return Unpin(globals, named);
  const absl::StatusOr<v1::Best> best =
      named.session->connection().PinBest(named.task, options.record);
  if (!best.ok()) return Explain(best.status(), named, options.record);
  if (globals.json) return PrintJson(PinJson(*best));
  PrintWrapped(absl::StrCat("pinned record ", best->record().id(), ", ",
                            FormatLatency(best->latency_ns()), ", as the best of ", named.Title()));
  return absl::OkStatus();
}

}  // namespace

void AddPin(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("pin", "Pin the best of an operator, so that no job replaces it; list pins");
  auto options = std::make_shared<PinOptions>();
  AddBestWords(command, options->words, /*required=*/false);
  command.AddFlag("--remove", options->remove, "Remove the pin; the best stays published");
  command.Add("--record", options->record,
              "Make this record the best and pin it; hone records query lists the records",
              {Range(int64_t{1}, INT64_MAX), Excludes("--remove")});
  Complete(command, globals,
           "Without an operator, the pins are listed, with --target those of one target. Jobs on a "
           "pinned operator measure and report "
           "their own best and do not publish it. A pinned best that turns out to be wrong, such "
           "as in hone revalidate, is withdrawn, and its pin is removed. hone forget removes the "
           "pin, too.\n\n"
           "The exit code is 3 if no best is known, or if --remove finds no pin. A server with "
           "authentication asks for the role admin to pin, and for the role client to list.\n\n"
           "Examples:\n"
           "  hone pin matmul m=1024 n=1024 k=1024\n"
           "  hone pin matmul m=1024 n=1024 k=1024 --record 4711\n"
           "  hone pin matmul m=1024 n=1024 k=1024 --remove\n"
           "  hone pin --json",
           [&globals, options] { return Pin(globals, *options); });
}

}  // namespace hone::cli

// hone models show, export, import.

#include "client/cli/tune/stored_model.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/fleet/machine_constants.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

constexpr char kDraft[] = "residual";        // what users know as the draft
constexpr size_t kMostModelFile = 64 << 20;  // bytes, the limit of the server
constexpr char kDraftWords[] = "Kind of model; draft (default) is what every search begins with";

struct StoredModelOptions {
  std::string model = "draft";
  std::string op;
  std::string file;
};

std::string KindOf(const StoredModelOptions& options) {
  return options.model == "draft" ? kDraft : options.model;
}

Json MetricsOf(const v1::StoredModel& model) {
  return Json::parse(model.metrics(), nullptr, /*allow_exceptions=*/false);
}

// A metric of a stored model; NaN if the model does not have it.
double MetricOf(const v1::StoredModel& model, const char* name) {
  const Json metrics = MetricsOf(model);
  const bool has = metrics.is_object() && metrics.contains(name) && metrics[name].is_number();
  return has ? metrics[name].get<double>() : std::nan("");
}

std::string MetricCell(const v1::StoredModel& model, const char* name) {
  const double value = MetricOf(model, name);
  return std::isnan(value) ? "-" : absl::StrFormat("%.3f", value);
}

// Where a model comes from: "this server", "imported from HOST (store ID)", "…, not used".
std::string OriginText(const v1::StoredModel& model) {
  if (model.origin().empty()) return "this server";
  return absl::StrCat("imported from ", model.origin(), model.in_use() ? "" : ", not used");
}

// Whether a draft learned from another target, because that orders this target's results best.
bool IsForeign(const v1::StoredModel& model) {
  const Json metrics = MetricsOf(model);
  return metrics.is_object() && metrics.value("is_foreign", Json()) == true;
}

// By how much the loss on left-out tasks falls with what a draft has learned, of the part that is
// used: from 0 (nothing is used) to 1. NaN: the model was not judged that way.
double GainOf(const v1::StoredModel& model) {
  const double presets = MetricOf(model, "loss_of_presets");
  const double fitted = MetricOf(model, "loss_of_draft");
  const double corrected = MetricOf(model, "loss_with_trees");
  const double share = MetricOf(model, "share_of_trees");
  if (IsForeign(model)) return 1 - MetricOf(model, "loss_of_foreign") / presets;
  if (!(presets > 0) || std::isnan(fitted) || std::isnan(corrected) || std::isnan(share))
    return std::nan("");
  const Json metrics = MetricsOf(model);
  const bool fits = metrics.contains("factors") && metrics["factors"].is_object() &&
                    std::ranges::any_of(metrics["factors"], [](const Json& factor) {
                      return factor.is_number() && factor.get<double>() != 1;
                    });
  return 1 - (share > 0 ? corrected : fits ? fitted : presets) / presets;
}

absl::Status NoModel(const StoredModelOptions& options, const std::string& target) {
  return NothingKnownError(absl::StrCat("no trained model ", options.model,
                                        target.empty() ? "" : " of target ", target,
                                        " is in the store; hone models lists them"));
}

// The newest model of a kind that is in use; null: there is none.
const v1::StoredModel* FindModel(const v1::ListModelsResponse& list, const std::string& kind,
                                 const std::string& op) {
  const auto found = std::ranges::find_if(list.models(), [&](const v1::StoredModel& each) {
    return each.name() == kind && each.operator_() == op && each.in_use();
  });
  return found == list.models().end() ? nullptr : &*found;
}

void PrintLearned(const v1::StoredModel& model) {
  PrintWrapped(absl::StrCat("learned from ", Counted(model.records(), "result"), " of ",
                            Counted(model.workloads(), "task"), " of ", model.target(), ", ",
                            FormatTime(model.created_unix_ms()), ", by ",
                            model.origin().empty() ? "this server" : model.origin(),
                            model.origin().empty() ? "" : ", and imported",
                            IsForeign(model) ? "; they chose a draft that was learned on another "
                                               "machine, which orders them better"
                                             : ""));
  if (const double gain = GainOf(model); !std::isnan(gain)) {
    PrintWrapped(gain > 0 ? absl::StrFormat("gain: the loss on tasks that it was not learned on is "
                                            "%.0f %% less than with the constants alone",
                                            100 * gain)
                          : "gain: none; the constants order tasks that it was not learned on as "
                            "well, so only they are used");
  }
  Table table({Left("learned"), Right("value"), Left("source")});
  const std::function<void(const Json&, const std::string&)> add = [&](const Json& json,
                                                                       const std::string& prefix) {
    for (const auto& [key, value] : json.items()) {
      if (value.is_object()) add(value, absl::StrCat(prefix, key, " "));
      if (value.is_number())
        table.AddRow({absl::StrCat(prefix, key), absl::StrFormat("%.3g", value.get<double>()),
                      prefix == "factors " ? "fitted" : "judged"});
    }
  };
  if (const Json metrics = MetricsOf(model); metrics.is_object()) add(metrics, "");
  table.Print();
}

// A stored model and, of the learned draft, the constants of its target.
absl::Status ShowModel(const Globals& globals, const StoredModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string given, session->GivenTargetKey());
  HONE_ASSIGN_OR_RETURN(const v1::ListModelsResponse list, session->connection().ListModels(given));
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::WorkerInfo> workers,
                        session->connection().ListWorkers());
  const v1::StoredModel* const model = FindModel(list, KindOf(options), options.op);
  const std::string target = model != nullptr ? model->target() : given;
  // Measured constants rather than others, and the machine of today rather than that of the model.
  const v1::WorkerInfo* worker = nullptr;
  for (const v1::WorkerInfo& each : workers) {
    if (each.constants().empty() || !(target.empty() || each.target() == target)) continue;
    if (worker == nullptr || (IsMeasured(each.constants()) && !IsMeasured(worker->constants())))
      worker = &each;
  }
  const bool is_draft = KindOf(options) == kDraft;
  if (model == nullptr && (!is_draft || worker == nullptr)) return NoModel(options, given);
  const MachineConstants none;
  const MachineConstants& constants = !is_draft           ? none
                                      : worker != nullptr ? worker->constants()
                                                          : model->constants();
  if (globals.json) {
    Json json = model == nullptr ? Json::object() : ToJson(*model);
    if (model != nullptr) json["gain"] = GainOf(*model);
    if (is_draft) json["constants"] = ConstantsJson(constants);
    return PrintJson(json);
  }
  if (!constants.empty()) {
    absl::PrintF("%s, %s:\n", worker != nullptr ? worker->target() : model->target(),
                 !IsMeasured(constants) ? "which no worker has measured"
                 : worker != nullptr ? absl::StrCat("as its worker ", worker->id(), " measured it")
                                     : "as it was when the model was trained");
    ConstantsTable(constants).Print();
    absl::PrintF("\n");
  }
  if (model == nullptr) {
    PrintWrapped(
        "nothing was learned from results yet; a server learns after 64 of them, of two tasks or "
        "more. Until then, x86-64 CPUs with vectors of 256 bits begin with a draft that comes with "
        "Hone, and others with these constants");
  } else {
    PrintLearned(*model);
  }
  return absl::OkStatus();
}

absl::Status ExportModel(const Globals& globals, const StoredModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  HONE_ASSIGN_OR_RETURN(const v1::ListModelsResponse list,
                        session->connection().ListModels(target));
  const v1::StoredModel* const model = FindModel(list, KindOf(options), options.op);
  if (model == nullptr) return NoModel(options, target);
  HONE_ASSIGN_OR_RETURN(const std::string bytes, session->connection().ExportModel(model->id()));
  HONE_RETURN_IF_ERROR(
      WithExitCode(WriteFileAtomically(options.file, bytes, Durability::kProcess), kExitFailed));
  if (globals.json) {
    Json json = ToJson(*model);
    json["path"] = options.file;
    json["bytes"] = bytes.size();
    return PrintJson(json);
  }
  absl::PrintF("wrote %s: model %d, %s of %s, learned from %s of %s\n", options.file, model->id(),
               model->name(), model->target(), Counted(model->records(), "record"),
               Counted(model->workloads(), "workload"));
  return absl::OkStatus();
}

// Returns the content of a file that may not be a file of a model at all, such as a disk.
absl::StatusOr<std::string> ReadModelFile(const std::string& path) {
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("read ", path));
  const auto close = absl::MakeCleanup([&] {
    if (file != stdin) std::fclose(file);
  });
  std::string bytes(kMostModelFile + 1, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  if (std::ferror(file) != 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": it is empty"));
  if (bytes.size() <= kMostModelFile) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(path, ": more than ", FormatBytes(kMostModelFile),
                                                 ", which no file of hone models export has"));
}

absl::Status ImportModel(const Globals& globals, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadModelFile(path));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  const absl::StatusOr<v1::StoredModel> model = session->connection().ImportModel(bytes);
  // The server knows what is wrong, but not the file.
  if (absl::IsInvalidArgument(model.status()))
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", model.status().message()));
  HONE_RETURN_IF_ERROR(model.status());
  if (globals.json) return PrintJson(ToJson(*model));
  StoredTable({*model}).Print();
  const bool drafts = model->name() == kDraft && model->operator_().empty();
  PrintWrapped(!model->in_use()
                   ? "it is not used, because this server has trained its own since; hone models "
                     "evaluate --stored compares them"
               : drafts ? absl::StrCat("new jobs of ", model->target(),
                                       " begin with it until this server has learned its own")
                        : absl::StrCat("it is the ", model->name(), " of ", model->target(),
                                       " until this server trains its own"));
  return absl::OkStatus();
}

}  // namespace

Table StoredTable(const std::vector<v1::StoredModel>& models) {
  Table table({Right("id"), Left("model"), Left("features"), Left("target"), Left("operator"),
               Right("records"), Right("workloads"), Right("top-1"), Right("pairs"), Right("size"),
               Left("when"), Left("trained by")});
  for (const v1::StoredModel& model : models) {
    table.AddRow(
        {absl::StrCat(model.id()), model.name(), model.feature_set(), model.target(),
         model.operator_().empty() ? "all" : model.operator_(), absl::StrCat(model.records()),
         absl::StrCat(model.workloads()), MetricCell(model, "top1"), MetricCell(model, "pairwise"),
         FormatBytes(model.size_bytes()), FormatTime(model.created_unix_ms()), OriginText(model)});
  }
  return table;
}

void AddStoredModels(Command& models, Globals& globals) {
  auto shown = std::make_shared<StoredModelOptions>();
  Command& show = models.AddCommand("show", "Show what the server has learned about a target");
  show.Add("model", shown->model, kDraftWords);
  show.Add("--op", shown->op, "Show the model that was trained on this operator only");
  Complete(
      show, globals,
      "The draft estimates how long a schedule takes, before anything is measured. Its "
      "constants are those that workers measured about their machine, or else presets of the kind "
      "of CPU. From all results of a "
      "target, the server learns a factor for each part of the estimate and trees that correct "
      "the rest, and uses them as far as they order tasks better that they were not learned "
      "on: the losses are means over such tasks, and the gain compares them.\n\n"
      "Examples:\n"
      "  hone models show\n"
      "  hone models show draft --target native --json",
      [&globals, shown] { return ShowModel(globals, *shown); });

  auto exported = std::make_shared<StoredModelOptions>();
  Command& out = models.AddCommand("export", "Write a trained model to a file for another server");
  out.Add("--model", exported->model, kDraftWords);
  out.Add("--op", exported->op, "Export the model that was trained on this operator only");
  out.Add("-o,--output", exported->file, "FILE to write", {Required()});
  Complete(out, globals,
           "Writes the newest model of that kind and target that is in use.\n\n"
           "Examples:\n"
           "  hone models export -o learned.honemodel\n"
           "  hone models export --target x86-avx512 --model xgboost -o trees.honemodel",
           [&globals, exported] { return ExportModel(globals, *exported); });

  auto path = std::make_shared<std::string>();
  Command& in = models.AddCommand("import", "Store a model that another server has trained");
  in.Add("file", *path, "File written by hone models export; - for standard input", {Required()});
  CompleteWithoutTarget(
      in, globals,
      "New jobs of the target begin with an imported draft until this server has learned its own "
      "from two tasks or more; what this server has learned later is never replaced. Needs the "
      "role of an administrator. Only import files of servers that you trust.\n\n"
      "Examples:\n"
      "  hone models import learned.honemodel",
      [&globals, path] { return ImportModel(globals, *path); });
}

}  // namespace hone::cli

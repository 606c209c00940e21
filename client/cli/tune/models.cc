#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/stored_model.h"
#include "client/cli/workload_argument.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct ModelsOptions {
  std::string model;                // to train
  std::vector<std::string> models;  // to evaluate
  std::vector<std::string> stored;  // the same, by id
  std::string op;
  std::string feature_set;
  std::vector<std::string> held_out;
  double held_out_trials = 0;
  int64_t records = 0;
  uint64_t seed = 0;
  int k = 16;
  std::string time = "10m";
};

// Formats a score; NaN (nothing to compare) is "-".
std::string Cell(double value, int digits = 3) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.*f", digits, value);
}

absl::Status ListModels(const Globals& globals) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  HONE_ASSIGN_OR_RETURN(const v1::ListModelsResponse list,
                        session->connection().ListModels(target));
  if (globals.json) {
    Json kinds = Json::array();
    for (const v1::ModelKind& kind : list.kinds()) {
      Json& json = kinds.emplace_back(
          FieldsJson(kind, {{"name", "model"}, "feature_set", "any_features", "has_spread"}));
      json["available"] = kind.missing().empty();
      json["missing"] = kind.missing();
    }
    return PrintJson({{"kinds", std::move(kinds)}, {"models", ListJson(list.models())}});
  }
  Table table({Left("model"), Left("features"), Left("other features"), Left("spread"), Text("")});
  for (const v1::ModelKind& kind : list.kinds()) {
    table.AddRow({kind.name(), kind.feature_set().empty() ? "-" : kind.feature_set(),
                  kind.any_features() ? "yes" : "no", kind.has_spread() ? "yes" : "no",
                  kind.missing().empty() ? "" : absl::StrCat("unavailable: ", kind.missing())});
  }
  table.Print();
  absl::PrintF("\n");
  StoredTable({list.models().begin(), list.models().end()})
      .Print(FromServer(
          "no trained models in the store; hone models train makes one from its records"));
  return absl::OkStatus();
}

// The server answers NotFound if it has no measurements to learn from.
absl::Status NothingKnownIfNotFound(const absl::Status& status) {
  return absl::IsNotFound(status) ? NothingKnownError(status.message()) : status;
}

absl::Status TrainModel(const Globals& globals, const ModelsOptions& options) {
  v1::TrainModelRequest request;
  request.set_operator_(options.op);
  request.set_max_records(options.records);
  request.set_seed(options.seed);
  request.mutable_model()->set_name(options.model);
  request.mutable_model()->set_feature_set(options.feature_set);
  HONE_ASSIGN_OR_RETURN(const absl::Duration limit, ParseDuration(options.time));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(*request.mutable_target(), session->GivenTargetKey());
  const absl::StatusOr<v1::StoredModel> model = session->connection().TrainModel(request, limit);
  HONE_RETURN_IF_ERROR(NothingKnownIfNotFound(model.status()));
  if (globals.json) return PrintJson(ToJson(*model));
  StoredTable({*model}).Print();
  return absl::OkStatus();
}

// Replaces a workload that is given in words by its digest. Leaves operators and prefixes of
// digests unchanged.
absl::StatusOr<std::string> HeldOut(const std::string& words) {
  if (words.find(' ') == std::string::npos) return words;
  const std::vector<std::string> list = absl::StrSplit(words, ' ', absl::SkipEmpty());
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(list));
  return argument.workload.StructuralDigest().ToHex();
}

// What of the records a model was not trained on. A stored model is asked for all of them.
std::string HeldOutText(const v1::ModelScore& score) {
  const std::string tasks = Counted(score.tasks(), "task");
  if (score.held_out() == "stored") return absl::StrCat("nothing of ", tasks);
  return score.held_out() == "tasks" ? tasks : absl::StrCat("trials of ", tasks);
}

void PrintEvaluation(const v1::EvaluateModelsResponse& evaluation, int k) {
  absl::PrintF("%s of %s on %s", Counted(evaluation.candidates(), "candidate"),
               Counted(evaluation.workloads(), "workload"), evaluation.target());
  if (evaluation.left_out() > 0) {
    absl::PrintF("; %s left out:", Counted(evaluation.left_out(), "measurement"));
    for (const v1::LeftOut& why : evaluation.left_out_because()) {
      absl::PrintF("\n  %d %s", why.count(), why.reason());
    }
  }
  absl::PrintF("\n\n");
  Table table({Left("model"), Left("features"), Left("held out"), Right("trained on"),
               Right("asked"), Right("top-1"), Right("top-5"), Right(absl::StrCat("peak@", k)),
               Right("pairs"), Right(absl::StrCat("recall@", k)), Right("RMSE"),
               Right("calibration"), Right("in spread"), Right("us each"), Right("train ms")});
  for (const v1::ModelScore& score : evaluation.scores()) {
    table.AddRow(
        {score.stored() == 0 ? score.model() : absl::StrCat(score.model(), " ", score.stored()),
         score.feature_set().empty() ? "-" : score.feature_set(), HeldOutText(score),
         absl::StrCat(score.trained_on()), absl::StrCat(score.evaluated_on()), Cell(score.top1()),
         Cell(score.top5()), Cell(score.peak()), Cell(score.pairwise()), Cell(score.recall()),
         Cell(score.rmse()), Cell(score.calibration_error()), Cell(score.coverage1()),
         Cell(score.predict_us(), 2), Cell(score.train_ms(), 1)});
  }
  table.Print();
}

absl::Status EvaluateModels(const Globals& globals, const ModelsOptions& options) {
  v1::EvaluateModelsRequest request;
  request.set_operator_(options.op);
  request.set_held_out_trials(options.held_out_trials);
  request.set_max_records(options.records);
  request.set_seed(options.seed);
  request.set_k(options.k);
  for (const std::string& name : options.models) {
    v1::ModelChoice& choice = *request.add_models();
    choice.set_name(name);
    choice.set_feature_set(options.feature_set);
  }
  for (const std::string& word : options.stored) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--stored ", word, ": not the id of a model; hone models list prints the ids"));
    }
    request.add_models()->set_stored(id);
  }
  if (options.models.empty() && !options.feature_set.empty()) {
    return absl::InvalidArgumentError(
        "--feature-set needs --model, because some models support only their own feature set");
  }
  for (const std::string& words : options.held_out) {
    HONE_ASSIGN_OR_RETURN(std::string word, HeldOut(words));
    request.add_held_out(std::move(word));
  }
  HONE_ASSIGN_OR_RETURN(const absl::Duration limit, ParseDuration(options.time));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(*request.mutable_target(), session->GivenTargetKey());
  const absl::StatusOr<v1::EvaluateModelsResponse> evaluation =
      session->connection().EvaluateModels(request, limit);
  HONE_RETURN_IF_ERROR(NothingKnownIfNotFound(evaluation.status()));
  if (!globals.json) {
    PrintEvaluation(*evaluation, options.k);
    return absl::OkStatus();
  }
  Json scores = Json::array();
  for (const v1::ModelScore& score : evaluation->scores()) {
    scores.push_back(FieldsJson(score, {"model",
                                        "feature_set",
                                        "held_out",
                                        "trained_on",
                                        "evaluated_on",
                                        {"tasks", "workload_count"},
                                        "top1",
                                        "top5",
                                        "peak",
                                        "recall",
                                        "pairwise",
                                        "rmse",
                                        "calibration_error",
                                        "coverage1",
                                        "coverage2",
                                        "predict_us",
                                        "train_ms",
                                        {"stored", "stored_model"}}));
  }
  Json left_out = Json::array();
  for (const v1::LeftOut& why : evaluation->left_out_because()) {
    left_out.push_back(FieldsJson(why));
  }
  return PrintJson({{"target", evaluation->target()},
                    {"workload_count", evaluation->workloads()},
                    {"candidate_count", evaluation->candidates()},
                    {"left_out", evaluation->left_out()},
                    {"left_out_because", std::move(left_out)},
                    {"k", options.k},
                    {"scores", std::move(scores)}});
}

void AddCommon(Command& command, ModelsOptions& options) {
  command.Add("--op", options.op, "Use only records of workloads with this name");
  command.Add("--feature-set", options.feature_set,
              "Feature set that the model reads instead of its own");
  command.Add("--records", options.records,
              "Use at most this many records, drawn evenly over workloads from all (default 4000)",
              {Range(1, 1'000'000'000)});
  command.Add("--seed", options.seed, "Seed of the split and of the models (default 0)", {Seed()});
  command.Add("--time", options.time, "Give up after this time (default 10m)");
}

}  // namespace

void AddModels(Command& app, Globals& globals) {
  Command& models =
      app.AddCommand("models", "List, train, evaluate, export and import cost models");
  models.RequireCommand(0, 1);
  Complete(models, globals,
           "Without a command, lists the registered kinds and the trained models.\n\n"
           "Examples:\n"
           "  hone models\n"
           "  hone models train --model xgboost --op matmul\n"
           "  hone models evaluate --held-out conv2d --json",
           [&globals] { return ListModels(globals); });

  Command& list = models.AddCommand("list", "List the registered kinds and the trained models");
  Complete(list, globals, "Examples:\n  hone models list --json | jq '.kinds[].model'",
           [&globals] { return ListModels(globals); });

  AddStoredModels(models, globals);

  auto training = std::make_shared<ModelsOptions>();
  Command& train =
      models.AddCommand("train", "Train a model on the records of the store, and store it");
  train.Add("--model", training->model, "Kind of model (default: the server's default)");
  AddCommon(train, *training);
  Complete(train, globals,
           "The target is the one with the most records unless --target names another.\n\n"
           "Examples:\n"
           "  hone models train\n"
           "  hone models train --model gp --feature-set analytic --op conv2d",
           [&globals, training] { return TrainModel(globals, *training); });

  auto judging = std::make_shared<ModelsOptions>();
  Command& evaluate = models.AddCommand(
      "evaluate", "Train models on part of the records, and evaluate them on the rest");
  evaluate.Add("--model", judging->models, "Models to evaluate; may be repeated (default: all)");
  evaluate.Add("--stored", judging->stored,
               "Id of a trained or imported model of hone models list, to evaluate as it is on all "
               "records; may be repeated");
  evaluate.Add("--held-out", judging->held_out,
               "Workloads to hold out: an operator, the beginning of a digest, or a workload in "
               "quotes; may be repeated");
  evaluate.Add("--held-out-trials", judging->held_out_trials,
               "Share of every workload's trials to hold out, such as 0.3", {Range(0.01, 0.99)});
  evaluate.Add("--k", judging->k, "Number of picks for peak@k and recall@k (default 16)",
               {Range(1, 10'000)});
  AddCommon(evaluate, *judging);
  Complete(evaluate, globals,
           "By default, holds out 0.3 of the trials, and then each of the five largest workloads. "
           "For a stored model that this server trained itself, nothing is held out.\n"
           "The columns of the result (a pick is a candidate in the order of its score):\n"
           "top-1, top-5: time of the best candidate divided by the best time of the first picks\n"
           "peak@k: best throughput so far divided by the best one, averaged over the first k "
           "picks\n"
           "pairs: share of pairs of candidates in the right order\n"
           "recall@k: share of the k fastest candidates that are among the first k picks\n"
           "calibration: distance between predicted and measured means\n\n"
           "Examples:\n"
           "  hone models evaluate --model xgboost --model gp\n"
           "  hone models evaluate --held-out conv2d --json\n"
           "  hone models evaluate --stored 7\n"
           "  hone models evaluate --held-out \"matmul m=512 n=512 k=512\" --held-out-trials 0.5",
           [&globals, judging] { return EvaluateModels(globals, *judging); });
}

}  // namespace hone::cli

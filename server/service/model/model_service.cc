#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "server/job/actor/executor.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/model/model_exchange.h"
#include "server/service/request_fields.h"
#include "server/service/services.h"

namespace hone::service {
namespace {

absl::Status CheckText(absl::string_view field, const std::string& text) {
  if (text.size() <= kMaxIdBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat("longer than ", kMaxIdBytes, " bytes"));
}

// Checks a name; "" stands for a default.
absl::Status CheckKnown(absl::string_view field, const std::string& name,
                        const std::vector<std::string>& known) {
  HONE_RETURN_IF_ERROR(CheckText(field, name));
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) {
    return absl::OkStatus();
  }
  return FieldError(
      field, absl::StrCat("there is no '", name, "'; there are: ", absl::StrJoin(known, ", ")));
}

constexpr int64_t kMostRecords = 200'000;  // of a training, which then needs 1.9 GB

// The name of this server in the files that it exports.
std::string NameOfServer(const std::string& store_identity) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host[0] == 0 ? "a server" : host, " (store ", store_identity, ")");
}

absl::StatusOr<job::ModelChoice> ToChoice(const v1::ModelChoice& choice,
                                          const job::TaskEnvironment& environment) {
  HONE_RETURN_IF_ERROR(CheckKnown("cost_model", choice.name(), AllModelNames(environment)));
  HONE_RETURN_IF_ERROR(
      CheckKnown("feature_set", choice.feature_set(), environment.FeatureSetNames()));
  if (choice.stored() < 0) return FieldError("stored", "negative");
  if (choice.stored() > 0 && !(choice.name().empty() && choice.feature_set().empty()))
    return FieldError("stored", "a stored model has its own kind and feature set");
  return job::ModelChoice{choice.name(), choice.feature_set(), choice.stored()};
}

template <typename Request>
absl::StatusOr<job::RecordedTaskQuery> ToRecordQuery(const Request& request) {
  HONE_RETURN_IF_ERROR(CheckText("target", request.target()));
  HONE_RETURN_IF_ERROR(CheckText("operator", request.operator_()));
  if (request.max_records() < 0 || request.max_records() > kMostRecords)
    return FieldError("max_records", absl::StrCat("not in 0 to ", kMostRecords));
  job::RecordedTaskQuery query{.target = request.target(), .op = request.operator_()};
  if (request.max_records() > 0) query.max_records = request.max_records();
  return query;
}

// The maximum duration, even if the client's deadline is later. Other work on models waits.
constexpr absl::Duration kMaxWork = absl::Hours(2);

// The context is valid while the work runs, because the work finishes the reactor at its end.
job::WorkLimit LimitOf(const Call& call, absl::Time now) {
  return {.deadline = std::min(absl::FromChrono(call.context->deadline()), now + kMaxWork),
          .cancelled = [context = call.context] { return context->IsCancelled(); }};
}

}  // namespace

absl::StatusOr<job::TrainingQuery> ToQuery(const v1::TrainModelRequest& request,
                                           const job::TaskEnvironment& environment) {
  job::TrainingQuery query{.seed = request.seed()};
  HONE_ASSIGN_OR_RETURN(query.records, ToRecordQuery(request));
  HONE_ASSIGN_OR_RETURN(query.model, ToChoice(request.model(), environment));
  if (query.model.stored != 0) return FieldError("stored", "a stored model is not trained");
  if (query.model.name.empty()) query.model.name = environment.default_cost_model();
  return query;
}

absl::StatusOr<job::EvaluationQuery> ToQuery(const v1::EvaluateModelsRequest& request,
                                             const job::TaskEnvironment& environment) {
  job::EvaluationQuery query{.held_out_trials = request.held_out_trials(), .seed = request.seed()};
  HONE_ASSIGN_OR_RETURN(query.records, ToRecordQuery(request));
  if (request.models_size() > kMaxModels) {
    return FieldError("models", absl::StrCat("more than ", kMaxModels));
  }
  for (const v1::ModelChoice& choice : request.models()) {
    HONE_ASSIGN_OR_RETURN(job::ModelChoice model, ToChoice(choice, environment));
    query.models.push_back(std::move(model));
  }
  if (query.models.empty()) {
    for (const std::string& name : environment.CostModelNames()) query.models.push_back({name, ""});
  }
  if (request.held_out_size() > kMaxHeldOut) {
    return FieldError("held_out", absl::StrCat("more than ", kMaxHeldOut));
  }
  for (const std::string& word : request.held_out()) {
    HONE_RETURN_IF_ERROR(CheckText("held_out", word));
    query.held_out.push_back(word);
  }
  if (!(query.held_out_trials >= 0 && query.held_out_trials < 1)) {
    return FieldError("held_out_trials", "not a share from 0 to below 1");
  }
  if (request.k() < 0) return FieldError("k", "negative");
  if (request.k() > 0) query.k = request.k();
  return query;
}

v1::ModelKind ToProto(const cost_model::CostModelInfo& info) {
  v1::ModelKind message;
  message.set_name(info.name);
  message.set_feature_set(info.feature_set);
  message.set_any_features(info.any_features);
  message.set_has_spread(info.has_spread);
  message.set_missing(info.missing);
  return message;
}

v1::StoredModel ToProto(const store::ModelRow& row) {
  v1::StoredModel message;
  message.set_id(row.id);
  message.set_name(row.key.name);
  message.set_feature_set(row.key.feature_set);
  message.set_target(row.key.target);
  message.set_operator_(row.key.scope);
  message.set_version(row.version);
  message.set_records(row.records);
  message.set_workloads(row.workloads);
  message.set_created_unix_ms(row.created_unix_ms);
  message.set_metrics(row.metrics);
  message.set_size_bytes(row.size);
  message.set_origin(row.origin);
  message.set_in_use(row.in_use);
  message.set_target_text(row.target_text);
  if (const auto target = target::Target::FromText(row.target_text); target.ok())
    AddConstants(*target, *message.mutable_constants());
  return message;
}

v1::EvaluateModelsResponse ToProto(const job::ModelEvaluation& evaluation) {
  v1::EvaluateModelsResponse message;
  message.set_target(evaluation.target);
  message.set_workloads(evaluation.tasks);
  message.set_candidates(evaluation.candidates);
  message.set_left_out(evaluation.left_out.Total());
  for (const auto& [reason, count] : evaluation.left_out.Reasons()) {
    v1::LeftOut& row = *message.add_left_out_because();
    row.set_reason(reason);
    row.set_count(count);
  }
  for (const job::ModelScore& score : evaluation.scores) {
    v1::ModelScore& row = *message.add_scores();
    row.set_model(score.model);
    row.set_feature_set(score.feature_set);
    row.set_held_out(score.held_out);
    row.set_trained_on(score.trained_on);
    row.set_evaluated_on(score.evaluated_on);
    row.set_tasks(score.tasks);
    row.set_top1(score.top1);
    row.set_top5(score.top5);
    row.set_peak(score.peak);
    row.set_recall(score.recall);
    row.set_pairwise(score.pairwise);
    row.set_rmse(score.rmse);
    row.set_calibration_error(score.calibration_error);
    row.set_coverage1(score.coverage1);
    row.set_coverage2(score.coverage2);
    row.set_predict_us(score.predict_us);
    row.set_train_ms(score.train_ms);
    row.set_stored(score.stored);
  }
  return message;
}

absl::Status ModelService::ListModels(const Call&, const v1::ListModelsRequest& request,
                                      v1::ListModelsResponse* response) {
  HONE_ASSIGN_OR_RETURN(
      const std::vector<store::ModelRow> rows,
      deps_.store->ListModels(request.name(), request.target(), request.with_earlier()));
  for (const cost_model::CostModelInfo& info : deps_.environment->CostModels()) {
    if (request.name().empty() || request.name() == info.name) {
      *response->add_kinds() = ToProto(info);
    }
  }
  for (const store::ModelRow& row : rows) *response->add_models() = ToProto(row);
  return absl::OkStatus();
}

void ModelService::TrainModel(const Call& call, const v1::TrainModelRequest* request,
                              v1::StoredModel* response, Reply reply) {
  absl::StatusOr<job::TrainingQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  // Before the minutes of the training, whose result could not be stored.
  if (absl::Status writable = deps_.store->CheckWritable(); !writable.ok()) return reply(writable);
  deps_.models->Train(*std::move(query), LimitOf(call, deps_.clock->Now()),
                      [reply, response](const absl::StatusOr<store::ModelRow>& row) {
                        if (row.ok()) *response = ToProto(*row);
                        reply(row.status());
                      });
}

void ModelService::EvaluateModels(const Call& call, const v1::EvaluateModelsRequest* request,
                                  v1::EvaluateModelsResponse* response, Reply reply) {
  absl::StatusOr<job::EvaluationQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  deps_.models->Evaluate(*std::move(query), LimitOf(call, deps_.clock->Now()),
                         [reply, response](const absl::StatusOr<job::ModelEvaluation>& found) {
                           if (found.ok()) *response = ToProto(*found);
                           reply(found.status());
                         });
}

absl::StatusOr<std::shared_ptr<const std::string>> ModelService::FileOf(int64_t id) const {
  HONE_ASSIGN_OR_RETURN(const store::ModelRow row, deps_.store->GetModelById(id));
  HONE_ASSIGN_OR_RETURN(const std::string identity, deps_.store->Identity());
  return std::make_shared<const std::string>(EncodeModelFile(row, NameOfServer(identity)));
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* ModelService::ExportModel(
    const Call& call, const v1::ExportModelRequest* request) {
  auto* writer = new ArtifactWriter<v1::ArtifactChunk>(deps_, call.context);
  const auto send = [this, writer, id = request->id()](const absl::Status& admitted) {
    absl::StatusOr<std::shared_ptr<const std::string>> file = nullptr;
    std::string digest;
    const absl::Status read = job::Attempt([&]() -> absl::Status {
      HONE_RETURN_IF_ERROR(admitted);
      HONE_ASSIGN_OR_RETURN(file, FileOf(id));
      digest = Sha256Of(**file);
      return absl::OkStatus();
    });
    if (!read.ok()) file = read;
    writer->Send(digest, std::move(file));
  };
  deps_.readers->Run(ReadOf(ReaderLane::kLong, call), send);
  return writer;
}

void ModelService::KeepFile(const std::string& bytes,
                            std::function<void(absl::StatusOr<store::ModelRow>)> done) const {
  store::ModelRow row;
  const absl::Status usable = job::Attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(row, DecodeModelFile(bytes));
    return CheckImportedModel(row, *deps_.environment, deps_.clock->Now());
  });
  if (!usable.ok()) return done(usable);
  deps_.store->PutModel(std::move(row), [this, done = std::move(done)](absl::StatusOr<int64_t> id) {
    if (!id.ok()) return done(id.status());
    // Reads must not run on the store's thread.
    deps_.executor->Schedule([this, done, id = *id] {
      store::ModelRow stored;
      const absl::Status read = job::Attempt([&]() -> absl::Status {
        HONE_ASSIGN_OR_RETURN(stored, deps_.store->GetModelById(id));
        HONE_ASSIGN_OR_RETURN(const store::ModelRow used, deps_.store->GetModel(stored.key));
        stored.in_use = used.id == id;
        return absl::OkStatus();
      });
      if (!read.ok()) return done(read);
      done(std::move(stored));
    });
  });
}

grpc::ServerReadReactor<v1::ArtifactChunk>* ModelService::ImportModel(const Call& call,
                                                                      v1::StoredModel* response) {
  const auto check = [](const std::string& name) {
    if (IsSha256(name)) return absl::OkStatus();
    return absl::InvalidArgumentError("digest: not 64 hex digits");
  };
  const auto keep = [this, response](const std::string& name, std::string bytes, const auto& done) {
    // Loading a large model takes a while.
    deps_.executor->Schedule([this, response, name, bytes = std::move(bytes), done] {
      if (Sha256Of(bytes) != name)
        return done(absl::InvalidArgumentError("digest: it is not that of the bytes"));
      KeepFile(bytes, [response, done](const absl::StatusOr<store::ModelRow>& row) {
        if (row.ok()) *response = ToProto(*row);
        done(row.status());
      });
    });
  };
  return new ArtifactReader<v1::ArtifactChunk, v1::StoredModel>(deps_, call.context, response,
                                                                {.check = check, .keep = keep});
}

absl::Status ModelService::DescribeFeatures(const Call&, const v1::DescribeFeaturesRequest& request,
                                            v1::FeatureTable* response) {
  if (request.feature_set().size() > kMaxIdBytes) {
    return FieldError("feature_set", "too long");
  }
  HONE_ASSIGN_OR_RETURN(const std::string target, DescribedTarget(request.target(), *deps_.fleet));
  HONE_ASSIGN_OR_RETURN(
      const job::FeatureTable table,
      deps_.environment->DescribeFeatures(request.trace(), target, request.feature_set()));
  *response = ToProto(table);
  return absl::OkStatus();
}

}  // namespace hone::service

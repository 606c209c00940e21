#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/message_fields.h"
#include "common/target/target.h"
#include "hone/v1/model_file.pb.h"
#include "nlohmann/json.hpp"
#include "server/job/actor/executor.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/model_file.h"

namespace hone::service {
namespace {

constexpr absl::string_view kFileMagic = "HONELRND";
constexpr uint32_t kFileLayout = 1;
constexpr size_t kFileHead = kFileMagic.size() + sizeof(uint32_t);
constexpr size_t kFileDigest = 2 * sizeof(uint64_t);

constexpr size_t kMostMetrics = 64 << 10;     // bytes
constexpr int kMostMetricDepth = 8;           // of objects in objects
constexpr size_t kMostTargetText = 64 << 10;  // bytes, as for workers
constexpr int64_t kMostCounted = int64_t{1} << 40;
constexpr uint32_t kMostColumns = 1 << 16;
constexpr absl::Duration kMostAhead = absl::Hours(24);  // of the clock of another server

absl::Status BadFile(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable file of a model: ", why,
                                                 "; hone models export writes such files"));
}

absl::Status CheckWord(absl::string_view what, absl::string_view text, size_t most) {
  if (text.size() > most) {
    return BadFile(
        absl::StrCat(what, " has ", text.size(), " bytes; at most ", most, " are allowed"));
  }
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return BadFile(absl::StrCat(what, " has a control character"));
  return absl::OkStatus();
}

bool IsPlain(const nlohmann::json& json, int depth) {
  if (json.is_number()) return std::isfinite(json.get<double>());
  if (json.is_object() || json.is_array()) {
    return depth > 0 && std::ranges::all_of(json, [&](const nlohmann::json& each) {
             return IsPlain(each, depth - 1);
           });
  }
  return true;
}

absl::Status CheckMetrics(const std::string& text) {
  if (text.size() > kMostMetrics)
    return BadFile(absl::StrCat("the metrics have ", text.size(), " bytes; at most ", kMostMetrics,
                                " are allowed"));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return BadFile("the metrics are not a JSON object");
  if (!IsPlain(json, kMostMetricDepth))
    return BadFile("the metrics are nested too deeply, or one is not a finite number");
  return absl::OkStatus();
}

absl::Status CheckCounts(const store::ModelRow& row, absl::Time now) {
  if (row.records < 1 || row.records > kMostCounted || row.workloads < 1 ||
      row.workloads > row.records) {
    return BadFile(absl::StrCat("a model cannot be trained on ", row.records, " records of ",
                                row.workloads, " workloads"));
  }
  if (row.created_unix_ms <= 0 || row.created_unix_ms > absl::ToUnixMillis(now + kMostAhead)) {
    return BadFile(absl::StrCat("it was trained at an impossible time, ", row.created_unix_ms,
                                " ms after 1970"));
  }
  return absl::OkStatus();
}

absl::Status CheckTargetOf(const store::ModelRow& row) {
  if (row.key.target.empty()) return BadFile("it names no target");
  HONE_RETURN_IF_ERROR(CheckWord("the target", row.key.target, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(
      CheckWord("the description of the target", row.target_text, kMostTargetText));
  if (row.target_text.empty()) return absl::OkStatus();
  const absl::StatusOr<target::Target> target = target::Target::FromText(row.target_text);
  if (!target.ok()) return BadFile(absl::StrCat("its target: ", target.status().message()));
  if (target->Key() == row.key.target) return absl::OkStatus();
  return BadFile(
      absl::StrCat("its target is described as ", target->Key(), ", but named ", row.key.target));
}

// Asks the model for a few rows, because numbers that were changed by hand may be read but spoil
// every search. A draft refuses rows of the other kind of device than its own; those of a GPU have
// an estimate of its cycles.
absl::Status CheckAnswers(const cost_model::CostModel& model, uint32_t columns, bool of_gpu) {
  if (columns == 0) return absl::OkStatus();
  if (columns > kMostColumns) return BadFile(absl::StrCat("it reads ", columns, " columns"));
  cost_model::FeatureMatrix rows{.columns = static_cast<int>(columns)};
  for (const float value : {0.0f, 1.0f, 100.0f}) {
    std::vector<float> row(columns, value);
    if (columns >= cost_model::kDraftColumns)
      row[columns - cost_model::kDraftColumns + cost_model::kGpuEstimate] = of_gpu ? 1 + value : 0;
    rows.Append(row, 1);
  }
  const absl::StatusOr<cost_model::Prediction> answers = model.Predict(rows);
  if (!answers.ok()) return BadFile(answers.status().message());
  if (std::ranges::all_of(answers->mean, [](double mean) { return std::isfinite(mean); }))
    return absl::OkStatus();
  return BadFile("the model predicts what is not a number");
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
  HONE_RETURN_IF_ERROR(
      Choose("cost_model", choice.name(), "", AllModelNames(environment)).status());
  HONE_RETURN_IF_ERROR(
      Choose("feature_set", choice.feature_set(), "", environment.FeatureSetNames()).status());
  if (choice.stored() < 0) return FieldError("stored", "negative");
  if (choice.stored() > 0 && !(choice.name().empty() && choice.feature_set().empty()))
    return FieldError("stored", "a stored model has its own kind and feature set");
  return job::ModelChoice{choice.name(), choice.feature_set(), choice.stored()};
}

template <typename Request>
absl::StatusOr<job::RecordedTaskQuery> ToRecordQuery(const Request& request) {
  HONE_RETURN_IF_ERROR(CheckLength("target", request.target()));
  HONE_RETURN_IF_ERROR(CheckLength("operator", request.operator_()));
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

// The fields of a model that files and lists have in common.
template <typename Row, typename Visit>
void VisitModel(Row& row, Visit visit) {
  visit({.proto = "name"}, row.key.name);
  visit({.proto = "feature_set"}, row.key.feature_set);
  visit({.proto = "target"}, row.key.target);
  visit({.proto = "target_text"}, row.target_text);
  visit({.proto = "operator"}, row.key.scope);
  visit({.proto = "version"}, row.version);
  visit({.proto = "records"}, row.records);
  visit({.proto = "workloads"}, row.workloads);
  visit({.proto = "created_unix_ms"}, row.created_unix_ms);
  visit({.proto = "metrics"}, row.metrics);
  visit({.proto = "origin"}, row.origin);
}

}  // namespace

std::string EncodeModelFile(const store::ModelRow& row, const std::string& here) {
  v1::ModelFile file;
  VisitModel(row, record::MessageWriter(file));
  if (row.origin.empty()) file.set_origin(here);
  file.set_model(row.bytes);
  cost_model::ByteWriter head, tail;
  head.Add(kFileLayout);
  const std::string bytes =
      absl::StrCat(kFileMagic, std::move(head).Finish(), file.SerializeAsString());
  const Digest digest = DigestOf(bytes);
  tail.Add(digest.high, digest.low);
  return absl::StrCat(bytes, std::move(tail).Finish());
}

absl::StatusOr<store::ModelRow> DecodeModelFile(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kFileMagic))
    return BadFile(absl::StrCat("it does not begin with ", kFileMagic));
  if (bytes.size() < kFileHead + kFileDigest) return BadFile("it is truncated");
  const absl::string_view signed_part = bytes.substr(0, bytes.size() - kFileDigest);
  cost_model::ByteReader head(signed_part.substr(kFileMagic.size()));
  HONE_ASSIGN_OR_RETURN(const uint32_t layout, head.Read<uint32_t>());
  if (layout != kFileLayout) {
    return BadFile(
        absl::StrCat("it is of layout ", layout, ", but this program reads layout ", kFileLayout));
  }
  cost_model::ByteReader tail(bytes.substr(signed_part.size()));
  Digest digest;
  HONE_RETURN_IF_ERROR(tail.Read(digest.high, digest.low));
  if (DigestOf(signed_part) != digest)
    return BadFile("it is truncated or damaged: its digest does not match");
  v1::ModelFile file;
  const absl::string_view message = signed_part.substr(kFileHead);
  if (!file.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return BadFile("its message is malformed");
  store::ModelRow row{.bytes = std::move(*file.mutable_model())};
  VisitModel(row, record::MessageReader(file, /*check=*/false));
  row.size = static_cast<int64_t>(row.bytes.size());
  return row;
}

absl::Status CheckImportedModel(const store::ModelRow& row, const job::TaskEnvironment& environment,
                                absl::Time now) {
  HONE_RETURN_IF_ERROR(CheckWord("the name", row.key.name, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the feature set", row.key.feature_set, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the operator", row.key.scope, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the origin", row.origin, kMaxIdBytes));
  if (row.origin.empty()) return BadFile("it does not say which server trained it");
  HONE_RETURN_IF_ERROR(CheckTargetOf(row));
  HONE_RETURN_IF_ERROR(CheckCounts(row, now));
  HONE_RETURN_IF_ERROR(CheckMetrics(row.metrics));
  if (row.bytes.size() > store::Store::kMaxModelBytes)
    return BadFile(absl::StrCat("the model has ", row.bytes.size(), " bytes; at most ",
                                store::Store::kMaxModelBytes, " are allowed"));
  const absl::StatusOr<cost_model::ModelHeader> header = cost_model::ReadModelHeader(row.bytes);
  if (!header.ok()) return BadFile(header.status().message());
  if (header->name != row.key.name || header->feature_set != row.key.feature_set ||
      int64_t{header->version} != row.version) {
    return BadFile(absl::StrCat("it describes version ", row.version, " of model '", row.key.name,
                                "' on feature set '", row.key.feature_set, "', but holds version ",
                                header->version, " of '", header->name, "' on '",
                                header->feature_set, "'"));
  }
  const absl::StatusOr<std::unique_ptr<cost_model::CostModel>> model =
      environment.CreateModel(row.key.name, {.feature_set = row.key.feature_set});
  if (!model.ok()) return BadFile(model.status().message());
  if (const absl::Status loaded = (*model)->Load(row.bytes); !loaded.ok())
    return BadFile(loaded.message());
  const absl::StatusOr<target::Target> target = target::Target::FromText(row.target_text);
  return CheckAnswers(**model, header->columns, target.ok() && target->kind != target::Kind::kCpu);
}

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
    HONE_RETURN_IF_ERROR(CheckLength("held_out", word));
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
  VisitModel(row, record::MessageWriter(message));
  message.set_id(row.id);
  message.set_size_bytes(row.size);
  message.set_in_use(row.in_use);
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
  HONE_RETURN_IF_ERROR(CheckLength("feature_set", request.feature_set()));
  HONE_ASSIGN_OR_RETURN(const std::string target, DescribedTarget(request.target(), *deps_.fleet));
  HONE_ASSIGN_OR_RETURN(
      const job::FeatureTable table,
      deps_.environment->DescribeFeatures(request.trace(), target, request.feature_set()));
  *response = ToProto(table);
  return absl::OkStatus();
}

}  // namespace hone::service

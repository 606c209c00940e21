#include "server/service/model_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/service/described_target.h"
#include "server/service/field_error.h"
#include "server/service/job_convert.h"
#include "server/service/model_convert.h"

namespace hone::service {
namespace {

// The maximum duration, even if the client's deadline is later.
constexpr absl::Duration kMaxWork = absl::Minutes(10);

// The context is valid while the work runs, because the work finishes the reactor at its end.
job::WorkLimit LimitOf(Context* context, absl::Time now) {
  return {.deadline = std::min(absl::FromChrono(context->deadline()), now + kMaxWork),
          .cancelled = [context] { return context->IsCancelled(); }};
}

}  // namespace

absl::Status ModelService::ListModels(const v1::ListModelsRequest& request,
                                      v1::ListModelsResponse* response) {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::ModelRow> rows,
                        deps_.store->ListModels(request.name(), request.target()));
  for (const cost_model::CostModelInfo& info : deps_.environment->CostModels()) {
    if (request.name().empty() || request.name() == info.name) {
      *response->add_kinds() = ToProto(info);
    }
  }
  for (const store::ModelRow& row : rows) *response->add_models() = ToProto(row);
  return absl::OkStatus();
}

void ModelService::TrainModel(Context* context, const v1::TrainModelRequest* request,
                              v1::StoredModel* response, Reply reply) {
  absl::StatusOr<job::TrainingQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  // Before the minutes of the training, whose result could not be stored.
  if (absl::Status writable = deps_.store->CheckWritable(); !writable.ok()) return reply(writable);
  deps_.models->Train(*std::move(query), LimitOf(context, deps_.clock->Now()),
                      [reply, response](const absl::StatusOr<store::ModelRow>& row) {
                        if (row.ok()) *response = ToProto(*row);
                        reply(row.status());
                      });
}

void ModelService::EvaluateModels(Context* context, const v1::EvaluateModelsRequest* request,
                                  v1::EvaluateModelsResponse* response, Reply reply) {
  absl::StatusOr<job::EvaluationQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  deps_.models->Evaluate(*std::move(query), LimitOf(context, deps_.clock->Now()),
                         [reply, response](const absl::StatusOr<job::ModelEvaluation>& found) {
                           if (found.ok()) *response = ToProto(*found);
                           reply(found.status());
                         });
}

absl::Status ModelService::DescribeFeatures(const v1::DescribeFeaturesRequest& request,
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

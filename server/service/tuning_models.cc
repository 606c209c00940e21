// The calls of the tuning service that are about cost models.

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/service/model_convert.h"
#include "server/service/tuning_service.h"

namespace hone::service {
namespace {

// The most, also for a client that waits longer.
constexpr absl::Duration kMaxWork = absl::Minutes(10);

// The context lives until its reactor finishes, which is the last thing that the work does.
task::WorkLimit LimitOf(grpc::CallbackServerContext* context, absl::Time now) {
  return {.deadline = std::min(absl::FromChrono(context->deadline()), now + kMaxWork),
          .cancelled = [context] { return context->IsCancelled(); }};
}

}  // namespace

absl::Status TuningService::ListModels(const v1::ListModelsRequest& request,
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

void TuningService::TrainModel(Context* context, const v1::TrainModelRequest* request,
                               v1::StoredModel* response, Reply reply) {
  absl::StatusOr<task::TrainingQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  deps_.models->Train(*std::move(query), LimitOf(context, deps_.clock->Now()),
                      [reply, response](const absl::StatusOr<store::ModelRow>& row) {
                        if (row.ok()) *response = ToProto(*row);
                        reply(row.status());
                      });
}

void TuningService::EvaluateModels(Context* context, const v1::EvaluateModelsRequest* request,
                                   v1::EvaluateModelsResponse* response, Reply reply) {
  absl::StatusOr<task::EvaluationQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return reply(query.status());
  deps_.models->Evaluate(*std::move(query), LimitOf(context, deps_.clock->Now()),
                         [reply, response](const absl::StatusOr<task::ModelEvaluation>& found) {
                           if (found.ok()) *response = ToProto(*found);
                           reply(found.status());
                         });
}

}  // namespace hone::service

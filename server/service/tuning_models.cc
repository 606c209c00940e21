// The calls of the tuning service that are about cost models.

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/service/model_convert.h"
#include "server/service/tuning_service.h"

namespace hone::service {
namespace {

// However long a client is willing to wait.
constexpr absl::Duration kMaxWork = absl::Minutes(10);

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// The context lives until its reactor finishes, which is the last thing that the work does.
task::WorkLimit LimitOf(grpc::CallbackServerContext* context, absl::Time now) {
  return {.deadline = std::min(absl::FromChrono(context->deadline()), now + kMaxWork),
          .cancelled = [context] { return context->IsCancelled(); }};
}

}  // namespace

absl::Status TuningService::FindModels(const v1::ListModelsRequest& request,
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

grpc::ServerUnaryReactor* TuningService::ListModels(grpc::CallbackServerContext* context,
                                                    const v1::ListModelsRequest* request,
                                                    v1::ListModelsResponse* response) {
  if (absl::Status ready = deps_.readiness->Check(); !ready.ok()) return Refuse(context, ready);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  deps_.executor->Schedule([this, reactor, request, response] {
    reactor->Finish(rpc::ToGrpc(FindModels(*request, response)));
  });
  return reactor;
}

grpc::ServerUnaryReactor* TuningService::TrainModel(grpc::CallbackServerContext* context,
                                                    const v1::TrainModelRequest* request,
                                                    v1::StoredModel* response) {
  if (absl::Status ready = deps_.readiness->Check(); !ready.ok()) return Refuse(context, ready);
  absl::StatusOr<task::TrainingQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return Refuse(context, query.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  deps_.models->Train(*std::move(query), LimitOf(context, deps_.clock->Now()),
                      [reactor, response](absl::StatusOr<store::ModelRow> row) {
                        if (row.ok()) *response = ToProto(*row);
                        reactor->Finish(rpc::ToGrpc(row.status()));
                      });
  return reactor;
}

grpc::ServerUnaryReactor* TuningService::EvaluateModels(grpc::CallbackServerContext* context,
                                                        const v1::EvaluateModelsRequest* request,
                                                        v1::EvaluateModelsResponse* response) {
  if (absl::Status ready = deps_.readiness->Check(); !ready.ok()) return Refuse(context, ready);
  absl::StatusOr<task::EvaluationQuery> query = ToQuery(*request, *deps_.environment);
  if (!query.ok()) return Refuse(context, query.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  deps_.models->Evaluate(*std::move(query), LimitOf(context, deps_.clock->Now()),
                         [reactor, response](absl::StatusOr<task::ModelEvaluation> evaluation) {
                           if (evaluation.ok()) *response = ToProto(*evaluation);
                           reactor->Finish(rpc::ToGrpc(evaluation.status()));
                         });
  return reactor;
}

}  // namespace hone::service

#include "server/service/admin_service.h"

#include <functional>
#include <utility>

#include "server/service/record_stream.h"

namespace hone::service {
namespace {

constexpr int kDefaultKeepBest = 32;
constexpr int kMaxKeepBest = 1'000'000;

// Long work ends when its caller has gone or the server drains.
std::function<bool()> CancelledBy(grpc::CallbackServerContext* context,
                                  const Readiness* readiness) {
  return [context, readiness] { return context->IsCancelled() || !readiness->Check().ok(); };
}

}  // namespace

void AdminService::BackupStore(Context* context, const v1::BackupStoreRequest* request,
                               v1::BackupStoreResponse* response, Reply reply) {
  deps_.executor->Schedule([this, context, reply, request, response] {
    const absl::StatusOr<store::BackupReport> report =
        deps_.store->Backup(request->path(), CancelledBy(context, deps_.readiness));
    if (report.ok()) {
      response->set_size_bytes(report->size_bytes);
      response->set_records(report->records);
    }
    reply(report.status());
  });
}

void AdminService::CompactStore(Context* context, const v1::CompactStoreRequest* request,
                                v1::CompactStoreResponse* response, Reply reply) {
  if (request->keep_best() < 0 || request->keep_best() > kMaxKeepBest ||
      request->keep_unix_ms() < 0) {
    return reply(absl::InvalidArgumentError(
        "keep_best and keep_unix_ms: a number and a time, not negative"));
  }
  deps_.executor->Schedule([this, context, reply, request, response] {
    const store::CompactOptions options{
        .keep_unix_ms = request->keep_unix_ms(),
        .keep_best = request->keep_best() == 0 ? kDefaultKeepBest : request->keep_best(),
        .dry_run = request->dry_run()};
    const absl::StatusOr<store::CompactReport> report =
        deps_.store->Compact(options, CancelledBy(context, deps_.readiness));
    if (report.ok()) {
      response->set_records_removed(report->records_removed);
      response->set_jobs_removed(report->jobs_removed);
      response->set_texts_removed(report->texts_removed);
      response->set_artifacts_removed(report->artifacts_removed);
      response->set_bytes_before(report->bytes_before);
      response->set_bytes_after(report->bytes_after);
    }
    reply(report.status());
  });
}

grpc::ServerReadReactor<v1::TextChunk>* AdminService::ImportRecords(
    grpc::CallbackServerContext*, v1::ImportRecordsResponse* response) {
  return new ImportReader(deps_.store, deps_.environment, deps_.executor, deps_.readiness->Check(),
                          response);
}

}  // namespace hone::service

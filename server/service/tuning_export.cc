// The calls of the tuning service that give out records.

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "server/service/job_convert.h"
#include "server/service/record_stream.h"
#include "server/service/tuning_service.h"

namespace hone::service {
namespace {

// InvalidArgument, naming the field: too long, an unknown outcome, an empty span of time.
absl::StatusOr<store::RecordQuery> ToQuery(const v1::ListRecordsRequest& request) {
  for (const auto& [name, text] :
       {std::pair("workload_digest", &request.workload_digest()),
        std::pair("target", &request.target()), std::pair("operator", &request.operator_()),
        std::pair("job_id", &request.job_id()), std::pair("outcome", &request.outcome())}) {
    if (text->size() > kMaxIdBytes) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": longer than ", kMaxIdBytes));
    }
  }
  if (!request.outcome().empty()) {
    if (const auto known = record::OutcomeFromName(request.outcome()); !known.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("outcome: ", known.status().message()));
    }
  }
  if (request.since_unix_ms() < 0 || request.until_unix_ms() < 0) {
    return absl::InvalidArgumentError("since_unix_ms and until_unix_ms: before 1970");
  }
  store::RecordQuery query{.workload_digest = request.workload_digest(),
                           .target = request.target(),
                           .op = request.operator_(),
                           .best_only = request.best_only(),
                           .since_unix_ms = request.since_unix_ms(),
                           .until_unix_ms = request.until_unix_ms(),
                           .job_id = request.job_id(),
                           .outcome = request.outcome()};
  switch (request.quarantine()) {
    case v1::QUARANTINE_UNSPECIFIED:
      break;
    case v1::QUARANTINE_ONLY:
      query.quarantine = store::QuarantineFilter::kOnly;
      break;
    case v1::QUARANTINE_NONE:
      query.quarantine = store::QuarantineFilter::kNone;
      break;
    default:
      return absl::InvalidArgumentError("quarantine: not one of its values");
  }
  return query;
}

}  // namespace

absl::Status TuningService::ListRecords(const v1::ListRecordsRequest& request,
                                        v1::ListRecordsResponse* response) {
  HONE_ASSIGN_OR_RETURN(store::RecordQuery query, ToQuery(request));
  HONE_ASSIGN_OR_RETURN(query.page_size, PageSize(request.page_size()));
  query.newest_first = request.newest_first();
  // The id of the last record of the page before.
  int64_t& last = query.newest_first ? query.before_id : query.after_id;
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &last) || last < (query.newest_first ? 1 : 0))) {
    return absl::InvalidArgumentError("page_token: not one that this server gave");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records, deps_.store->Query(query));
  for (const record::Record& record : records) *response->add_records() = record::ToProto(record);
  if (static_cast<int>(records.size()) == query.page_size) {
    response->set_next_page_token(absl::StrCat(records.back().id));
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::TextChunk>* TuningService::ExportRecords(
    grpc::CallbackServerContext*, const v1::ListRecordsRequest* request) {
  absl::Status refused = deps_.readiness->Check();
  store::RecordQuery query;
  if (refused.ok()) {
    absl::StatusOr<store::RecordQuery> asked = ToQuery(*request);
    refused = asked.status();
    if (asked.ok()) query = *std::move(asked);
  }
  return new ExportWriter(deps_.store, std::move(query), deps_.executor, refused);
}

}  // namespace hone::service

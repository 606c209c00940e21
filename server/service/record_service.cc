#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/record/origin.h"
#include "common/record/proto_convert.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "server/job/actor/executor.h"
#include "server/job/job_manager.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"
#include "server/store/exchange/exchange.h"
#include "server/store/read_limit.h"

namespace hone::service {
namespace {

absl::Status CheckWorkload(const job::TaskEnvironment& environment, const std::string& digest,
                           const std::string& text) {
  HONE_ASSIGN_OR_RETURN(const job::WorkloadInfo workload, environment.Describe(text));
  if (workload.digest == digest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the workload's digest is ", workload.digest, ", not ", digest));
}

// A value that the protocol cannot represent, such as NaN, would make every list that contains it
// unreadable.
absl::Status CheckListable(const store::ImportBatch& batch) {
  for (size_t i = 0; i < batch.records.size(); ++i) {
    const absl::Status status = record::FromProto(record::ToProto(batch.records[i])).status();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(batch.where[i], ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

constexpr int kDefaultKeepBest = 32;
constexpr int kMaxKeepBest = 1'000'000;

// InvalidArgument: a text is too long, an outcome is unknown, or a time span is empty; the message
// names the field.
absl::StatusOr<store::RecordQuery> ToQuery(const v1::ListRecordsRequest& request) {
  for (const auto& [name, text] :
       {std::pair("workload_digest", &request.workload_digest()),
        std::pair("target", &request.target()), std::pair("operator", &request.operator_()),
        std::pair("job_id", &request.job_id()), std::pair("outcome", &request.outcome()),
        std::pair("proposer", &request.proposer())}) {
    HONE_RETURN_IF_ERROR(CheckLength(name, *text));
  }
  if (!request.outcome().empty()) {
    if (const auto known = record::OutcomeFromName(request.outcome()); !known.ok()) {
      return FieldError("outcome", known.status().message());
    }
  }
  if (request.since_unix_ms() < 0 || request.until_unix_ms() < 0) {
    return absl::InvalidArgumentError("a time is before 1970");
  }
  store::RecordQuery query{.workload_digest = request.workload_digest(),
                           .target = request.target(),
                           .op = request.operator_(),
                           .best_only = request.best_only(),
                           .unpublished_best = request.unpublished_best(),
                           .since_unix_ms = request.since_unix_ms(),
                           .until_unix_ms = request.until_unix_ms(),
                           .job_id = request.job_id(),
                           .outcome = request.outcome(),
                           .proposer = request.proposer()};
  static_assert(static_cast<int>(store::QuarantineFilter::kNone) == v1::QUARANTINE_NONE);
  if (!v1::Quarantine_IsValid(request.quarantine())) {
    return FieldError("quarantine", "not one of its values");
  }
  query.quarantine = static_cast<store::QuarantineFilter>(request.quarantine());
  return query;
}

// Page tokens name the last record of the page: its id and, in another order than that of ids, ":"
// and the value that records are sorted by.
std::string PageToken(const record::Record& last, store::RecordOrder order) {
  const store::RecordPlace place = store::PlaceOf(last, order);
  std::string token = absl::StrCat(last.id);
  if (order == store::RecordOrder::kId) return token;
  absl::StrAppend(&token, ":");
  if (order == store::RecordOrder::kTime || order == store::RecordOrder::kLatency) {
    absl::StrAppendFormat(&token, "%.17g", place.number);
  } else {
    absl::StrAppend(&token, place.text);
  }
  return token;
}

// Sets where the page of a token begins. Returns false if the token is malformed.
bool ReadPageToken(absl::string_view token, store::RecordQuery& query) {
  if (query.order == store::RecordOrder::kId) {
    int64_t& last = query.newest_first ? query.before_id : query.after_id;
    return absl::SimpleAtoi(token, &last) && last >= (query.newest_first ? 1 : 0);
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(token, absl::MaxSplits(':', 1));
  store::RecordPlace place;
  if (!absl::SimpleAtoi(parts.first, &place.id) || place.id < 1) return false;
  if (parts.first.size() == token.size()) return false;
  if (query.order == store::RecordOrder::kTime || query.order == store::RecordOrder::kLatency) {
    // Beyond this, not every whole number is a double.
    constexpr double kMost = 9e15;
    if (!absl::SimpleAtod(parts.second, &place.number) || !(std::abs(place.number) < kMost)) {
      return false;
    }
  } else {
    place.text = std::string(parts.second);
  }
  query.after = std::move(place);
  return true;
}

// Whether long work must end, because its caller has gone or the server is shutting down.
bool MustEnd() { return !store::ReadLimit::Check().ok(); }

// The streams of exports and imports. The store is read on the threads for that, and lines are
// checked on the executor, not on gRPC's threads.

// Sends an export in chunks of at most rpc::kChunkBytes, as fast as the receiver reads them.
class ExportWriter final : public Download<v1::TextChunk> {
 public:
  // If `refused` is not OK, the stream ends with it at once.
  ExportWriter(const Dependencies& deps, const Call& call, store::RecordQuery query,
               const absl::Status& refused);

 private:
  ~ExportWriter() override = default;
  void ReadNext();
  void SendNext() override;

  store::RecordExport export_;
  ReaderThreads* const readers_;
  ReaderThreads::Read read_;  // the next one
  std::string lines_;         // lines of which the first sent_ bytes were sent
  size_t sent_ = 0;
  v1::TextChunk chunk_;
};

// Receives an import, checks each part when it arrives, and stores the whole import at its end.
class ImportReader final : public grpc::ServerReadReactor<v1::TextChunk> {
 public:
  ImportReader(const Dependencies& deps, v1::ImportRecordsResponse* response);
  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  ~ImportReader() override = default;
  void End();

  store::Store* const store_;
  job::Executor* const executor_;
  v1::ImportRecordsResponse* const response_;
  store::RecordImport import_;
  v1::TextChunk chunk_;
};

ExportWriter::ExportWriter(const Dependencies& deps, const Call& call, store::RecordQuery query,
                           const absl::Status& refused)
    : Download(deps, call.context),
      export_(deps.store, std::move(query)),
      readers_(deps.readers),
      read_(ReadOf(ReaderLane::kLong, call)) {
  absl::Status may = refused;
  if (may.ok()) may = Reserve(kPageBytes);
  may.ok() ? ReadNext() : Finish(rpc::ToGrpc(may));
}

void ExportWriter::ReadNext() {
  ReaderThreads::Read read = read_;
  read_.continues = true;
  readers_->Run(std::move(read), [this](const absl::Status& admitted) {
    const absl::Status status = job::Attempt([&]() -> absl::Status {
      HONE_RETURN_IF_ERROR(admitted);
      HONE_ASSIGN_OR_RETURN(lines_, export_.Next());
      return absl::OkStatus();
    });
    if (!status.ok() || lines_.empty()) {
      Finish(rpc::ToGrpc(status));
      return;
    }
    sent_ = 0;
    SendNext();
  });
}

void ExportWriter::SendNext() {
  Pause();
  if (sent_ == lines_.size()) return ReadNext();
  const size_t size = std::min<size_t>(rpc::kChunkBytes, lines_.size() - sent_);
  chunk_.set_data(lines_.data() + sent_, size);
  sent_ += size;
  Write(chunk_);
}

ImportReader::ImportReader(const Dependencies& deps, v1::ImportRecordsResponse* response)
    : store_(deps.store),
      executor_(deps.executor),
      response_(response),
      import_([environment = deps.environment](const std::string& digest, const std::string& text) {
        return CheckWorkload(*environment, digest, text);
      }) {
  StartRead(&chunk_);
}

void ImportReader::OnReadDone(bool ok) {
  // Handles one piece at a time. The next read begins when this piece is done.
  executor_->Schedule([this, ok] {
    if (!ok) return End();
    if (chunk_.data().size() > kMaxChunkBytes) {
      Finish(rpc::ToGrpc(RequestTooLong(chunk_.data().size(), kMaxChunkBytes)));
      return;
    }
    const absl::Status fed = job::Attempt([this] { return import_.Feed(chunk_.data()); });
    if (!fed.ok()) {
      Finish(rpc::ToGrpc(fed));
      return;
    }
    StartRead(&chunk_);
  });
}

void ImportReader::End() {
  // If the caller disconnected too early, the last line is missing, which is detected here.
  store::ImportBatch batch;
  const absl::Status listable = job::Attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(batch, std::move(import_).Finish());
    return CheckListable(batch);
  });
  if (!listable.ok()) {
    Finish(rpc::ToGrpc(listable));
    return;
  }
  store_->Import(std::move(batch), [this](absl::StatusOr<store::ImportReport> report) {
    if (report.ok()) {
      response_->set_added(report->added);
      response_->set_known(report->known);
    }
    Finish(ToCaller(report.status()));
  });
}

}  // namespace

absl::Status RecordService::ListRecords(const Call&, const v1::ListRecordsRequest& request,
                                        v1::ListRecordsResponse* response) {
  HONE_ASSIGN_OR_RETURN(store::RecordQuery query, ToQuery(request));
  HONE_ASSIGN_OR_RETURN(query.page_size, PageSize(request.page_size()));
  query.newest_first = request.newest_first();
  static_assert(static_cast<int>(store::RecordOrder::kLatency) == v1::RECORD_ORDER_LATENCY);
  if (!v1::RecordOrder_IsValid(request.order()))
    return FieldError("order", "not one of its values");
  query.order = static_cast<store::RecordOrder>(request.order());
  for (int order = v1::RecordOrder_MIN; order <= v1::RecordOrder_MAX; ++order) {
    if (!store::IsServed(query, static_cast<store::RecordOrder>(order))) continue;
    response->add_orders(static_cast<v1::RecordOrder>(order));
  }
  if (!store::IsServed(query, query.order)) {
    return FieldError("order",
                      "no index sorts records like this with these filters; orders other than the "
                      "number need no filters, except that times may have a span and latencies a "
                      "workload with a target");
  }
  if (!request.page_token().empty() && !ReadPageToken(request.page_token(), query)) {
    return FieldError("page_token", "not a page token of this server");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records, deps_.store->Query(query));
  size_t bytes = 0, added = 0;
  while (added < records.size() && bytes < kPageBytes) {
    bytes += (*response->add_records() = record::ToProto(records[added++])).ByteSizeLong();
  }
  if (added > 0 &&
      (added < records.size() || static_cast<int>(records.size()) == query.page_size)) {
    response->set_next_page_token(PageToken(records[added - 1], query.order));
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::TextChunk>* RecordService::ExportRecords(
    const Call& call, const v1::ListRecordsRequest* request) {
  absl::StatusOr<store::RecordQuery> query = ToQuery(*request);
  const absl::Status refused = query.status();
  return new ExportWriter(deps_, call, std::move(query).value_or(store::RecordQuery()), refused);
}

grpc::ServerReadReactor<v1::TextChunk>* RecordService::ImportRecords(
    const Call&, v1::ImportRecordsResponse* response) {
  return new ImportReader(deps_, response);
}

void RecordService::ForgetRecords(const Call& call, const v1::ForgetRecordsRequest* request,
                                  v1::ForgetRecordsResponse* response, Reply reply) {
  absl::StatusOr<store::TaskKey> task = TaskOf(*request);
  if (!task.ok()) return reply(task.status());
  deps_.executor->Schedule([this, task = *std::move(task), by = call.caller.name, reply, response] {
    const absl::Status unused = job::Attempt([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const std::string job,
                            job::FindUnfinishedJob(*deps_.jobs, *deps_.environment, task));
      if (job.empty()) return absl::OkStatus();
      return absl::FailedPreconditionError(
          absl::StrCat("job ", job, " measures this workload: wait for its end, or cancel it"));
    });
    if (!unused.ok()) return reply(unused);
    const std::string when =
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", deps_.clock->Now(), absl::UTCTimeZone());
    deps_.store->Forget(task, record::ForgottenReason(by, when),
                        [response, reply](absl::StatusOr<store::Forgotten> forgotten) {
                          if (!forgotten.ok()) return reply(forgotten.status());
                          response->set_records(forgotten->records);
                          for (const record::Record& best : forgotten->bests) {
                            *response->add_bests() = record::ToProto(best);
                          }
                          reply(absl::OkStatus());
                        });
  });
}

absl::Status RecordService::BackupStore(const Call&, const v1::BackupStoreRequest& request,
                                        v1::BackupStoreResponse* response) {
  HONE_ASSIGN_OR_RETURN(const store::BackupReport report,
                        deps_.store->Backup(request.path(), &MustEnd));
  response->set_size_bytes(report.size_bytes);
  response->set_records(report.records);
  return absl::OkStatus();
}

absl::Status RecordService::CompactStore(const Call&, const v1::CompactStoreRequest& request,
                                         v1::CompactStoreResponse* response) {
  if (request.by_policy() && (request.keep_best() != 0 || request.keep_unix_ms() != 0)) {
    return absl::InvalidArgumentError(
        "a compaction by the server's policy has no other limits; give either one");
  }
  if (request.keep_best() < 0 || request.keep_best() > kMaxKeepBest || request.keep_unix_ms() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the time before which records are removed must not be negative, and the number of best "
        "records that are kept must be from 0 to ",
        kMaxKeepBest));
  }
  store::CompactOptions options;
  if (request.by_policy()) {
    options = deps_.retention.At(deps_.clock->Now());
  } else {
    options.before = store::CompactOptions::All(request.keep_unix_ms());
    options.keep_best = request.keep_best() == 0 ? kDefaultKeepBest : request.keep_best();
    options.keep_sample = 0;
  }
  options.dry_run = request.dry_run();
  HONE_ASSIGN_OR_RETURN(const store::CompactReport report, deps_.store->Compact(options, &MustEnd));
  response->set_records_removed(report.records.rows);
  response->set_bests_removed(report.bests.rows);
  response->set_events_removed(report.events.rows);
  response->set_jobs_removed(report.jobs.rows);
  response->set_texts_removed(report.texts.rows);
  response->set_artifacts_removed(report.artifacts.rows);
  response->set_record_bytes(report.records.bytes);
  response->set_best_bytes(report.bests.bytes);
  response->set_event_bytes(report.events.bytes);
  response->set_job_bytes(report.jobs.bytes);
  response->set_text_bytes(report.texts.bytes);
  response->set_artifact_bytes(report.artifacts.bytes);
  response->set_bytes_before(report.bytes_before);
  response->set_bytes_after(report.bytes_after);
  return absl::OkStatus();
}

}  // namespace hone::service

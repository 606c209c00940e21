#include "server/service/record_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "server/job/actor/exceptions.h"

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

}  // namespace

ExportWriter::ExportWriter(store::Store* store, store::RecordQuery query, job::Executor* executor,
                           const absl::Status& refused)
    : export_(store, std::move(query)), executor_(executor) {
  if (!refused.ok()) {
    Finish(rpc::ToGrpc(refused));
    return;
  }
  executor_->Schedule([this] { Next(); });
}

void ExportWriter::Next() {
  if (sent_ == lines_.size()) {
    const absl::Status read = job::Attempt([this]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(lines_, export_.Next());
      return absl::OkStatus();
    });
    if (!read.ok() || lines_.empty()) {
      Finish(rpc::ToGrpc(read));
      return;
    }
    sent_ = 0;
  }
  const size_t size = std::min<size_t>(rpc::kChunkBytes, lines_.size() - sent_);
  chunk_.set_data(lines_.data() + sent_, size);
  sent_ += size;
  StartWrite(&chunk_);
}

void ExportWriter::OnWriteDone(bool ok) {
  if (!ok) {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the receiver disconnected"));
    return;
  }
  executor_->Schedule([this] { Next(); });
}

ImportReader::ImportReader(store::Store* store, const job::TaskEnvironment* environment,
                           job::Executor* executor, const absl::Status& refused,
                           v1::ImportRecordsResponse* response)
    : store_(store),
      executor_(executor),
      response_(response),
      import_([environment](const std::string& digest, const std::string& text) {
        return CheckWorkload(*environment, digest, text);
      }) {
  if (!refused.ok()) {
    Finish(rpc::ToGrpc(refused));
    return;
  }
  StartRead(&chunk_);
}

void ImportReader::OnReadDone(bool ok) {
  // Handles one piece at a time. The next read begins when this piece is done.
  executor_->Schedule([this, ok] {
    if (!ok) return End();
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
    Finish(rpc::ToGrpc(report.status()));
  });
}

}  // namespace hone::service

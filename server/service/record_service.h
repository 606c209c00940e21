#ifndef HONE_SERVER_SERVICE_RECORD_SERVICE_H_
#define HONE_SERVER_SERVICE_RECORD_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/task_environment.h"
#include "server/service/handler.h"
#include "server/service/reads/reader_threads.h"
#include "server/store/exchange/record_export.h"
#include "server/store/exchange/record_import.h"
#include "server/store/store.h"

namespace hone::service {

// The streams of exports and imports. Each deletes itself when it is done. The store is read on the
// threads for that, and lines are checked on the executor, not on gRPC's threads.

// Sends an export in chunks of at most rpc::kChunkBytes, as fast as the receiver reads them. It is
// ended if the receiver does not read.
class ExportWriter final : public grpc::ServerWriteReactor<v1::TextChunk> {
 public:
  // If `refused` is not OK, the stream ends with it at once.
  ExportWriter(const Dependencies& deps, Context* context, store::RecordQuery query,
               const absl::Status& refused);
  void OnWriteDone(bool ok) override;
  void OnDone() override {
    downloads_.Leave(number_);
    delete this;
  }

 private:
  ~ExportWriter() override = default;
  void ReadNext();
  void SendNext();

  store::RecordExport export_;
  ReaderThreads* const readers_;
  ReaderThreads::Read read_;  // the next one
  TransferHandler& downloads_;
  const int64_t number_;
  std::string lines_;  // lines of which the first sent_ bytes were sent
  size_t sent_ = 0;
  v1::TextChunk chunk_;
};

// Receives an import, checks each part when it arrives, and stores the whole import at its end.
class ImportReader final : public grpc::ServerReadReactor<v1::TextChunk> {
 public:
  ImportReader(store::Store* store, const job::TaskEnvironment* environment,
               job::Executor* executor, v1::ImportRecordsResponse* response);
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

// The calls that read, export, import and forget records, and those that back up and compact the
// store. Thread-safe. Errors are those of tuning.proto and admin.proto.
class RecordService {
 public:
  explicit RecordService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListRecords(const v1::ListRecordsRequest&, v1::ListRecordsResponse*);
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(const rpc::Identity&, Context*,
                                                         const v1::ListRecordsRequest*);
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(Context*, v1::ImportRecordsResponse*);
  void ForgetRecords(Context*, const v1::ForgetRecordsRequest*, v1::ForgetRecordsResponse*, Reply);
  // These end early as the read of their thread does.
  absl::Status BackupStore(const v1::BackupStoreRequest&, v1::BackupStoreResponse*);
  absl::Status CompactStore(const v1::CompactStoreRequest&, v1::CompactStoreResponse*);

 private:
  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_RECORD_SERVICE_H_

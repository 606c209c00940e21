#ifndef HONE_SERVER_SERVICE_RECORD_SERVICE_H_
#define HONE_SERVER_SERVICE_RECORD_SERVICE_H_

#include "absl/status/status.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "server/service/handler.h"

namespace hone::service {

// The calls that read, export, import and forget records, and those that back up and compact the
// store. Thread-safe. Errors are those of tuning.proto and admin.proto.
class RecordService {
 public:
  explicit RecordService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListRecords(const v1::ListRecordsRequest&, v1::ListRecordsResponse*);
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(Context*, const v1::ListRecordsRequest*);
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(Context*, v1::ImportRecordsResponse*);
  void ForgetRecords(Context*, const v1::ForgetRecordsRequest*, v1::ForgetRecordsResponse*, Reply);
  void BackupStore(Context*, const v1::BackupStoreRequest*, v1::BackupStoreResponse*, Reply);
  void CompactStore(Context*, const v1::CompactStoreRequest*, v1::CompactStoreResponse*, Reply);

 private:
  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_RECORD_SERVICE_H_

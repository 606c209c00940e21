#ifndef HONE_SERVER_SERVICE_BEST_SERVICE_H_
#define HONE_SERVER_SERVICE_BEST_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "server/service/handler.h"

namespace hone::service {

// The calls that look up, explain and pin the best kernel, and those that transfer its data; the
// results of other autotuners. Thread-safe. Errors are those of tuning.proto and admin.proto.
class BestService {
 public:
  explicit BestService(const Dependencies& deps) : deps_(deps) {}

  void LookupBest(Context*, const v1::LookupBestRequest*, v1::Best*, Reply);
  // A client gets artifacts that were published, and the best of its own job that does not publish.
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(const rpc::Identity&, Context*,
                                                           const v1::GetArtifactRequest*);
  grpc::ServerReadReactor<v1::ArtifactChunk>* UploadInputs(Context*, v1::UploadInputsResponse*);
  absl::Status GetCached(const v1::GetCachedRequest&, v1::CachedValue*);
  void PutCached(Context*, const v1::CachedValue*, v1::PutCachedResponse*, Reply);
  absl::Status ExplainSchedule(const v1::ExplainScheduleRequest&, v1::Explanation*);
  absl::Status ListPins(const v1::ListPinsRequest&, v1::ListPinsResponse*);
  void PinBest(Context*, const v1::PinBestRequest*, v1::Best*, Reply);
  void UnpinBest(Context*, const v1::UnpinBestRequest*, v1::UnpinBestResponse*, Reply);

 private:
  // Whether the artifact is the best of one of the caller's last jobs.
  bool IsBestOfOwnJob(const rpc::Identity& caller, const std::string& digest) const;
  // Describes a stored record. NotFound: there is none, or the text of its design space is gone.
  absl::StatusOr<v1::Best> FindRecord(int64_t id) const;
  absl::Status FindBest(const v1::LookupBestRequest& request, v1::Best* response);
  absl::Status FindNearest(const v1::LookupBestRequest& request, v1::Best* response);
  // Returns the key of the request's target. FailedPrecondition: it is the only target of all
  // workers, and there is none or several.
  absl::StatusOr<std::string> TargetOf(const v1::LookupBestRequest& request) const;
  // Returns a published best without its trace. `flops` is that of its workload.
  job::Best MakeBest(const store::BestRow& row, double flops) const;
  // Returns a published best as a response.
  absl::StatusOr<v1::Best> Describe(const store::BestRow& row) const;
  // Returns the record as a best, with the peaks that are stored with its job.
  job::Best WithPeaks(const record::Record& record, double flops) const;
  // Adds the shapes of both workloads to the error for pinning a record of another workload.
  absl::Status Explain(const absl::Status& status, const store::TaskKey& task,
                       int64_t record_id) const;
  // Returns the text of a target. NotFound: the operator was never measured on this target.
  // FailedPrecondition: only records of another store exist, and the target is neither a preset nor
  // this machine.
  absl::StatusOr<std::string> TargetText(const std::string& key, const std::string& op) const;

  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_BEST_SERVICE_H_

#ifndef HONE_CLIENT_CONNECTION_API_CONVERT_H_
#define HONE_CLIENT_CONNECTION_API_CONVERT_H_

#include "absl/status/statusor.h"
#include "client/connection/api.h"
#include "hone/v1/tuning.pb.h"

// Conversions between the structs of api.h and the messages of hone.v1. Conversions from a message
// return InvalidArgument, naming the field, if the server sent a value that this version does not
// know.
namespace hone::client {

v1::CreateJobRequest ToProto(const JobSpec& spec, const std::string& request_id);
v1::NetworkRequest ToProto(const NetworkSpec& network);
v1::LookupBestRequest ToProto(const BestQuery& query);

absl::StatusOr<Best> FromProto(const v1::Best& best);
absl::StatusOr<Job> FromProto(const v1::Job& job);
absl::StatusOr<JobState> FromProto(v1::JobState state);
absl::StatusOr<NetworkProgress> FromProto(const v1::NetworkProgress& progress);

absl::StatusOr<v1::WorkerInfo> FromProto(const v1::WorkerInfo& worker);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_API_CONVERT_H_

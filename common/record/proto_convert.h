#ifndef HONE_COMMON_RECORD_PROTO_CONVERT_H_
#define HONE_COMMON_RECORD_PROTO_CONVERT_H_

#include "absl/status/statusor.h"
#include "common/record/fields.h"
#include "common/record/record.h"
#include "hone/v1/process.pb.h"
#include "hone/v1/types.pb.h"

// Conversion between the plain structs of record.h and the messages of hone.v1. All functions are
// pure and follow the description of the fields (fields.h).
//
// ToProto makes free text (details, environment) acceptable for FromProto: it is converted to valid
// UTF-8 and cut at kMaxDetailBytes, because it may contain the output of a crashed child process.
// FromProto accepts untrusted messages. InvalidArgument: an enum value is unspecified or unknown, a
// number is not finite or out of range, a list or text is over its limit, or an artifact digest,
// which becomes a file name, is malformed. The message names the field.
namespace hone::record {

v1::Outcome ToProto(Outcome outcome);
absl::StatusOr<Outcome> FromProto(v1::Outcome outcome);

v1::Policy ToProto(const Policy& policy);
absl::StatusOr<Policy> FromProto(const v1::Policy& policy);

v1::Candidate ToProto(const Candidate& candidate);
absl::StatusOr<Candidate> FromProto(const v1::Candidate& candidate);

v1::BuildFacts ToProto(const BuildFacts& facts);
absl::StatusOr<BuildFacts> FromProto(const v1::BuildFacts& facts);

v1::MachineState ToProto(const MachineState& machine);
absl::StatusOr<MachineState> FromProto(const v1::MachineState& machine);

v1::MeasureResult ToProto(const MeasureResult& result);
absl::StatusOr<MeasureResult> FromProto(const v1::MeasureResult& result);

v1::Environment ToProto(const Environment& environment);
absl::StatusOr<Environment> FromProto(const v1::Environment& environment);

v1::Record ToProto(const Record& record);
absl::StatusOr<Record> FromProto(const v1::Record& record);

v1::BuildRequest ToProto(const BuildRequest& request);
absl::StatusOr<BuildRequest> FromProto(const v1::BuildRequest& request);

v1::BuildResponse ToProto(const BuildResponse& response);
absl::StatusOr<BuildResponse> FromProto(const v1::BuildResponse& response);

v1::RunRequest ToProto(const RunRequest& request);
absl::StatusOr<RunRequest> FromProto(const v1::RunRequest& request);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_PROTO_CONVERT_H_

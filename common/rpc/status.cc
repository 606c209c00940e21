#include "common/rpc/status.h"

#include <string>

#include "common/rpc/error_details.h"

namespace hone::rpc {
namespace {

constexpr size_t kMaxMessage = 4000;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxMessage)), EncodeDetails(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  DecodeDetails(status.error_details(), result);
  return result;
}

}  // namespace hone::rpc

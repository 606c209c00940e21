#include "client/connection/server_caller.h"

#include <random>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/connection/retry.h"

namespace hone::client {
namespace {

constexpr absl::Duration kProbeLimit = absl::Seconds(5);
// In every answer: the state of the store, unless it is in order.
constexpr char kStoreHeader[] = "hone-store-bin";
constexpr absl::string_view kStoreIsChecked = "checking";

}  // namespace

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

ServerCaller::ServerCaller(std::string address, const std::shared_ptr<grpc::Channel>& channel,
                           const ConnectionOptions& options)
    : address_(std::move(address)),
      options_(options),
      stubs_(v1::TuningService::NewStub(channel), v1::AdminService::NewStub(channel),
             v1::DashboardService::NewStub(channel)) {}

Connection::StoreReport ServerCaller::LastStoreReport() {
  absl::MutexLock lock(&mutex_);
  return store_;
}

absl::Status ServerCaller::Retry(const std::function<absl::Status()>& attempt) const {
  RetryOptions retry = options_.retry;
  retry.seed = RandomSeed();
  const auto checked = [&] {
    absl::Status status = attempt();
    if (absl::IsUnavailable(status) && options_.check != nullptr) {
      if (absl::Status known = options_.check(); !known.ok()) return known;
    }
    return status;
  };
  return Explained(RetryUnavailable(retry, checked, [] { return absl::Now(); }, absl::SleepFor));
}

absl::Status ServerCaller::Explained(const absl::Status& status) const {
  return rpc::ExplainCallError(status, address_, options_.security, kProbeLimit);
}

void ServerCaller::NoteStore(const grpc::ClientContext& context) {
  const auto& headers = context.GetServerInitialMetadata();
  const auto header = headers.find(kStoreHeader);
  const std::string text =
      header == headers.end() ? "" : std::string(header->second.data(), header->second.size());
  absl::MutexLock lock(&mutex_);
  store_.is_being_checked = text == kStoreIsChecked;
  store_.damage = store_.is_being_checked ? "" : text;
}

}  // namespace hone::client

#ifndef HONE_CLIENT_CONNECTION_SERVER_CALLER_H_
#define HONE_CLIENT_CONNECTION_SERVER_CALLER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/connection/api.h"
#include "client/connection/connection.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/dashboard.grpc.pb.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::client {

uint64_t RandomSeed();

// Makes the unary calls of a server: with deadlines, repeated while the server is unavailable, and
// with errors that say what to do. Connection has the calls themselves. Thread-safe.
class ServerCaller {
 public:
  using Stub = v1::TuningService::Stub;
  using AdminStub = v1::AdminService::Stub;
  using DashboardStub = v1::DashboardService::Stub;
  template <typename S, typename Request, typename Response>
  using Method = grpc::Status (S::*)(grpc::ClientContext*, const Request&, Response*);

  ServerCaller(std::string address, const std::shared_ptr<grpc::Channel>& channel,
               const ConnectionOptions& options);

  const std::string& address() const { return address_; }
  const ConnectionOptions& options() const { return options_; }
  Stub& stub() const { return *std::get<0>(stubs_); }
  AdminStub& admin() const { return *std::get<1>(stubs_); }
  Connection::StoreReport LastStoreReport();

  // Makes a unary call, and repeats it while the server is unavailable. `timeout` applies to each
  // attempt; 0: ConnectionOptions::call_timeout.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<S, Request, Response> method, const Request& request,
                                absl::Duration timeout = absl::ZeroDuration()) {
    Response response;
    HONE_RETURN_IF_ERROR(Retry([&] { return Attempt(method, request, timeout, response); }));
    return response;
  }
  // The same for calls that must not be repeated, because a second attempt would find nothing to
  // do: waits until the server answers another call, and then makes the call once.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> CallOnce(Method<S, Request, Response> method, const Request& request,
                                    absl::Duration timeout = absl::ZeroDuration()) {
    HONE_RETURN_IF_ERROR(Call(&Stub::ListPins, v1::ListPinsRequest()).status());
    Response response;
    HONE_RETURN_IF_ERROR(Explained(Attempt(method, request, timeout, response)));
    return response;
  }
  // As Call; the answer is checked.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Method<S, Request, Response> method, const Request& request) {
    HONE_ASSIGN_OR_RETURN(Response response, Call(method, request));
    HONE_RETURN_IF_ERROR(Check(response));
    return response;
  }
  // All items of a list that comes in pages, `limit` at most (0: all).
  template <typename Item, typename Request, typename Page>
  absl::StatusOr<std::vector<Item>> List(Method<Stub, Request, Page> method, Request request,
                                         int limit) {
    std::vector<Item> all;
    const auto left = [&] { return limit == 0 ? kPageSize : limit - static_cast<int>(all.size()); };
    do {
      request.set_page_size(std::min(kPageSize, left()));
      HONE_ASSIGN_OR_RETURN(const Page page, Call(method, request));
      HONE_RETURN_IF_ERROR(Append(Items(page), all));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && left() > 0);
    return all;
  }

  // Calls `attempt` until it does not return Unavailable (ConnectionOptions::retry).
  absl::Status Retry(const std::function<absl::Status()>& attempt) const;
  // Returns an error of a call with what it means for this connection, and what to do.
  absl::Status Explained(const absl::Status& status) const;

  // Convert the messages of a list. The results are checked.
  static absl::Status Append(const google::protobuf::RepeatedPtrField<v1::Record>& messages,
                             std::vector<record::Record>& records) {
    for (const v1::Record& message : messages) {
      HONE_ASSIGN_OR_RETURN(records.emplace_back(), record::FromProto(message));
    }
    return absl::OkStatus();
  }
  template <typename Message>
  static absl::Status Append(const google::protobuf::RepeatedPtrField<Message>& messages,
                             std::vector<Message>& checked) {
    for (const Message& message : messages) {
      HONE_RETURN_IF_ERROR(Check(message));
      checked.push_back(message);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kPageSize = 200;

  // The items on a page of a list.
  static const auto& Items(const v1::ListJobsResponse& page) { return page.jobs(); }
  static const auto& Items(const v1::ListRecordsResponse& page) { return page.records(); }
  static const auto& Items(const v1::ListWorkersResponse& page) { return page.workers(); }

  template <typename S, typename Request, typename Response>
  absl::Status Attempt(Method<S, Request, Response> method, const Request& request,
                       absl::Duration timeout, Response& response) {
    response.Clear();
    grpc::ClientContext context;
    rpc::SetDeadline(context, timeout == absl::ZeroDuration() ? options_.call_timeout : timeout);
    const absl::Status status = rpc::FromGrpc(
        ((*std::get<std::unique_ptr<S>>(stubs_)).*method)(&context, request, &response));
    if (status.ok()) NoteStore(context);
    return status;
  }
  void NoteStore(const grpc::ClientContext& context);

  const std::string address_;
  const ConnectionOptions options_;
  const std::tuple<std::unique_ptr<Stub>, std::unique_ptr<AdminStub>,
                   std::unique_ptr<DashboardStub>>
      stubs_;
  absl::Mutex mutex_;
  Connection::StoreReport store_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_SERVER_CALLER_H_

#include "common/rpc/channel.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/client_interceptor.h"

namespace hone::rpc {
namespace {

namespace experimental = grpc::experimental;

// Sends the token with every call. gRPC's call credentials are not used, because they need an
// encrypted channel, which a Unix socket or an SSH tunnel is not.
class TokenInterceptor final : public experimental::Interceptor {
 public:
  explicit TokenInterceptor(const std::string& header) : header_(header) {}
  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kTokenHeader, header_);
    }
    methods->Proceed();
  }

 private:
  const std::string& header_;  // of the factory, which the channel keeps
};

class TokenInterceptorFactory final : public experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptorFactory(const std::string& token)
      : header_(absl::StrCat(kTokenPrefix, token)) {}
  experimental::Interceptor* CreateClientInterceptor(experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(header_);
  }

 private:
  const std::string header_;
};

std::shared_ptr<grpc::ChannelCredentials> Credentials(const ChannelSecurity& security) {
  grpc::SslCredentialsOptions options;
  if (security.ca != kSystemAuthorities) options.pem_root_certs = security.ca;
  options.pem_private_key = security.identity.key;
  options.pem_cert_chain = security.identity.certificate;
  return grpc::SslCredentials(options);
}

// Keeps the first channel of the process for ever. When the last channel with asynchronous calls is
// destroyed, gRPC 1.51 ends the threads that serve them, and may abort if they are just finishing a
// call.
std::shared_ptr<grpc::Channel> KeepFirst(std::shared_ptr<grpc::Channel> channel) {
  static const auto* const kept = new std::shared_ptr<grpc::Channel>(channel);
  static_cast<void>(kept);
  return channel;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(absl::string_view text,
                                                             const ChannelSecurity& security) {
  HONE_ASSIGN_OR_RETURN(const Address address, Address::Parse(text));
  if (absl::Status allowed = CheckAllowed(address, security.tls(), security.insecure);
      !allowed.ok()) {
    // A mistyped name needs no advice about encryption.
    HONE_RETURN_IF_ERROR(Resolve(address).status());
    return allowed;
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, absl::ToInt64Milliseconds(kKeepaliveTime));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, absl::ToInt64Milliseconds(kKeepaliveTimeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // In spite of its name, this is the minimum timeout of an attempt to connect. A distant server,
  // or one to which a thousand workers connect at once, needs more than the first backoff.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Connections are not shared between channels of a process, so closing a channel closes its
  // connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (address.IsLocal()) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const bool encrypted = security.tls() && !address.IsUnix();
  if (encrypted && !security.server_name.empty()) {
    arguments.SetSslTargetNameOverride(security.server_name);
  }
  std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!security.token.empty()) {
    interceptors.push_back(std::make_unique<TokenInterceptorFactory>(security.token));
  }
  return KeepFirst(experimental::CreateCustomChannelWithInterceptors(
      address.ToText(), encrypted ? Credentials(security) : grpc::InsecureChannelCredentials(),
      arguments, std::move(interceptors)));
}

void SetDeadline(grpc::ClientContext& context, absl::Duration limit, bool wait_for_ready) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  context.set_wait_for_ready(wait_for_ready);
}

}  // namespace hone::rpc

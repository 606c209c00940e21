#include "common/rpc/channel.h"

#include <arpa/inet.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// Calls go to the servers that say that they serve. A server that only reads, because its store is
// damaged, still serves this service.
constexpr char kToTheLeader[] =
    R"({"loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": "hone.v1.TuningService"}})";

// Whether a host is a name, which may have several addresses.
bool IsName(const Address& address) {
  if (address.IsUnix() || address.host == "localhost") return false;
  in_addr v4;
  in6_addr v6;
  return inet_pton(AF_INET, address.host.c_str(), &v4) != 1 &&
         inet_pton(AF_INET6, address.host.c_str(), &v6) != 1;
}

// Returns the socket addresses of a list in the form of gRPC's resolvers, which look up no names.
// Hosts that are unknown are left out. Unavailable: all of them are unknown.
absl::StatusOr<std::string> TargetOf(const std::vector<Address>& addresses) {
  std::vector<std::string> targets;
  absl::Status unknown;
  for (const Address& address : addresses) {
    if (address.IsUnix()) {
      targets.push_back(address.path);
      continue;
    }
    const absl::StatusOr<AddressList> found = Resolve(address);
    unknown.Update(found.status());
    for (const addrinfo* one = found.ok() ? found->get() : nullptr; one != nullptr;
         one = one->ai_next) {
      char host[NI_MAXHOST];
      if (getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST) != 0) {
        continue;
      }
      // An IPv4 address in the form of IPv6, because a list has only one kind.
      targets.push_back(
          absl::StrCat("[", one->ai_family == AF_INET ? "::ffff:" : "", host, "]:", address.port));
    }
  }
  if (targets.empty()) return unknown;
  return absl::StrCat(addresses[0].IsUnix() ? "unix:" : "ipv6:", absl::StrJoin(targets, ","));
}

// Keeps the first channel of the process for ever. When the last channel with asynchronous calls is
// destroyed, gRPC 1.51 ends the threads that serve them, and may abort if they are just finishing a
// call.
std::shared_ptr<grpc::Channel> KeepFirst(std::shared_ptr<grpc::Channel> channel) {
  // "used": otherwise the compiler removes the pointer, and the channel counts as leaked.
  [[gnu::used]] static const auto* const kept = new std::shared_ptr<grpc::Channel>(channel);
  return channel;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(absl::string_view text,
                                                             const ChannelSecurity& security) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Address> addresses, ParseAddresses(text));
  const Address& first = addresses.front();
  const bool encrypted = security.tls() && !first.IsUnix();
  std::string server_name = security.server_name;
  for (const Address& address : addresses) {
    if (absl::Status allowed = CheckAllowed(address, security.tls(), security.insecure);
        !allowed.ok()) {
      // A mistyped name needs no advice about encryption.
      HONE_RETURN_IF_ERROR(Resolve(address).status());
      return allowed;
    }
    if (encrypted && security.server_name.empty() && address.host != first.host) {
      return absl::InvalidArgumentError(
          absl::StrCat("address '", text,
                       "': give server-name, a name that the certificates of all these servers "
                       "contain (hone-server init --host NAME)"));
    }
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  const bool is_to_leader = addresses.size() > 1 || IsName(first);
  const absl::Duration keepalive = is_to_leader ? kLeaderKeepaliveTime : kKeepaliveTime;
  const absl::Duration timeout = is_to_leader ? kLeaderKeepaliveTimeout : kKeepaliveTimeout;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, absl::ToInt64Milliseconds(keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, absl::ToInt64Milliseconds(timeout));
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
  if (std::all_of(addresses.begin(), addresses.end(), std::mem_fn(&Address::IsLocal))) {
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  }
  std::string target = first.ToText();
  if (addresses.size() > 1) {
    HONE_ASSIGN_OR_RETURN(target, TargetOf(addresses));
    if (server_name.empty()) server_name = first.host;
  }
  if (is_to_leader) {
    arguments.SetServiceConfigJSON(kToTheLeader);
    arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  }
  if (encrypted && !server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!security.token.empty()) {
    interceptors.push_back(std::make_unique<TokenInterceptorFactory>(security.token));
  }
  return KeepFirst(experimental::CreateCustomChannelWithInterceptors(
      target, encrypted ? Credentials(security) : grpc::InsecureChannelCredentials(), arguments,
      std::move(interceptors)));
}

void SetDeadline(grpc::ClientContext& context, absl::Duration limit, bool wait_for_ready) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  context.set_wait_for_ready(wait_for_ready);
}

}  // namespace hone::rpc

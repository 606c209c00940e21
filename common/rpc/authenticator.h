#ifndef HONE_COMMON_RPC_AUTHENTICATOR_H_
#define HONE_COMMON_RPC_AUTHENTICATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/role.h"
#include "common/rpc/token_table.h"
#include "grpcpp/server_context.h"

namespace hone::rpc {

// A token is sent in the header "authorization: Bearer TOKEN".
inline constexpr char kTokenHeader[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";

// Identifies callers by the token of the call, or else by the certificate of the connection, whose
// URI contains the role and the name (IdentityUri). Thread-safe.
class Authenticator {
 public:
  // If `tokens` is null, every token is unknown.
  explicit Authenticator(std::shared_ptr<const TokenTable> tokens) : tokens_(std::move(tokens)) {}

  // Replaces the tokens for later calls.
  void SetTokens(std::shared_ptr<const TokenTable> tokens) {
    absl::MutexLock lock(&mutex_);
    tokens_ = std::move(tokens);
  }

  // Unauthenticated: there is neither a token nor a certificate, the token is malformed or unknown,
  // or the certificate names no caller. The message says what to do, and never contains the token.
  absl::StatusOr<Identity> Identify(const grpc::ServerContextBase& context) const;
  // Returns the caller's name for logs; "" if it is not known.
  std::string NameOf(const grpc::ServerContextBase& context) const;

 private:
  std::shared_ptr<const TokenTable> Tokens() const {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }

  mutable absl::Mutex mutex_;
  std::shared_ptr<const TokenTable> tokens_ ABSL_GUARDED_BY(mutex_);  // may be null
};

// Returns the host of a call's peer: "10.0.0.7", "::1", or "unix".
std::string PeerHost(const grpc::ServerContextBase& context);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_AUTHENTICATOR_H_

#ifndef HONE_COMMON_RPC_AUTHENTICATOR_H_
#define HONE_COMMON_RPC_AUTHENTICATOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/revocation.h"
#include "common/rpc/role.h"
#include "common/rpc/token_table.h"
#include "grpcpp/server_context.h"

namespace hone::rpc {

// A token is sent in the header "authorization: Bearer TOKEN".
inline constexpr char kTokenHeader[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";

// Identifies callers by the token of the call, or else by the certificate of the connection, whose
// URI contains the role and the name (IdentityUri). A revoked certificate is refused even with a
// valid token, and so is one that was made with a token that is no longer known. Thread-safe.
class Authenticator {
 public:
  // If `tokens` is null, every token is unknown.
  explicit Authenticator(std::shared_ptr<const TokenTable> tokens) : tokens_(std::move(tokens)) {}

  // Replaces the tokens for later calls.
  void SetTokens(std::shared_ptr<const TokenTable> tokens) {
    absl::MutexLock lock(&mutex_);
    tokens_ = std::move(tokens);
  }

  // Replaces the list of revoked certificates for later calls. May be null.
  void SetRevoked(std::shared_ptr<const RevocationList> revoked) {
    absl::MutexLock lock(&mutex_);
    revoked_ = std::move(revoked);
  }

  // Returns the caller of a session, or nullopt if the token is not that of a session.
  using FindSession = std::function<std::optional<Identity>(absl::string_view token)>;
  // Sets the sessions of the web page, whose tokens are accepted from inside this process only.
  void SetSessions(FindSession find) {
    absl::MutexLock lock(&mutex_);
    sessions_ = std::move(find);
  }
  // Whether a token of a caller with this name is known.
  bool Knows(absl::string_view name) const;

  // Unauthenticated: there is neither a token nor a certificate, the token is malformed or unknown,
  // or the certificate names no caller or is revoked. The message says what to do, and never
  // contains the token.
  absl::StatusOr<Identity> Identify(const grpc::ServerContextBase& context) const;
  // Returns the caller's name for logs; "" if it is not known.
  std::string NameOf(const grpc::ServerContextBase& context) const;

 private:
  // Unauthenticated: the certificate of the connection is revoked.
  absl::Status CheckCertificate(const grpc::AuthContext& peer) const;

  std::shared_ptr<const TokenTable> Tokens() const {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }

  FindSession Sessions() const {
    absl::MutexLock lock(&mutex_);
    return sessions_;
  }

  mutable absl::Mutex mutex_;
  std::shared_ptr<const TokenTable> tokens_ ABSL_GUARDED_BY(mutex_);       // may be null
  std::shared_ptr<const RevocationList> revoked_ ABSL_GUARDED_BY(mutex_);  // may be null
  FindSession sessions_ ABSL_GUARDED_BY(mutex_);                           // may be null
};

inline constexpr char kInProcess[] = "in-process";
// Returns the host of a call's peer: "10.0.0.7", "::1", "unix", or kInProcess.
std::string PeerHost(const grpc::ServerContextBase& context);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_AUTHENTICATOR_H_

#ifndef HONE_SERVER_WEB_SESSION_BOOK_H_
#define HONE_SERVER_WEB_SESSION_BOOK_H_

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/role.h"

namespace hone::web {

// The sessions of the page. `hone dashboard` gets a code, the browser exchanges it once for the
// token of a session, and keeps the token in a cookie that scripts cannot read. Sessions are in
// memory only: they end with the server. Only hashes of codes and tokens are kept. Thread-safe.
class SessionBook {
 public:
  static constexpr absl::Duration kCodeLifetime = absl::Minutes(1);
  static constexpr absl::Duration kLifetime = absl::Hours(12);
  // If there are more, the oldest ones end.
  static constexpr size_t kMaxCodes = 256;
  static constexpr size_t kMaxSessions = 1024;

  struct Session {
    rpc::Identity caller;
    bool has_token = false;  // the caller has a token of the server, and ends with it
    std::string csrf;        // what every action of the page must repeat
    absl::Time expires;
  };

  // `clock` outlives this object.
  explicit SessionBook(const Clock* clock) : clock_(clock) {}

  // Returns a code for a session of the caller. Internal: see rpc::RandomToken.
  absl::StatusOr<std::string> Invite(const rpc::Identity& caller, bool has_token);
  // Exchanges a code for the token of a new session. Unauthenticated: the code is unknown, expired
  // or was used before.
  absl::StatusOr<std::string> Begin(absl::string_view code);
  // nullopt: there is no such session, or it has expired.
  std::optional<Session> Find(absl::string_view token) const;
  void End(absl::string_view token);

 private:
  // By hash; the values of both maps have the time at which they expire.
  using Sessions = std::map<std::string, Session>;
  void Add(Sessions& to, size_t most, const std::string& secret, Session session) const;

  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  Sessions codes_ ABSL_GUARDED_BY(mutex_);
  Sessions sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_SESSION_BOOK_H_

#ifndef HONE_CLIENT_CLI_SESSION_H_
#define HONE_CLIENT_CLI_SESSION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/globals.h"
#include "client/lib/connection.h"
#include "client/lib/private_server.h"
#include "common/target/target.h"

namespace hone::cli {

// A command's connection: to the server that was named, or to a private one for as long as the
// session lives.
class Session {
 public:
  // `with_worker`: the command measures, so that a private server needs a worker of this machine.
  // Errors as in PrivateServer::StartOrJoin and WaitUntilReady, and Connection::Open. REQUIRES: no
  // threads yet.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Globals& globals,
                                                       bool with_worker = false);

  client::Connection& connection() { return *connection_; }
  // Null with a server that was named.
  client::PrivateServer* private_server() { return private_server_.get(); }
  // Ok while a private server, and its worker once StartWorker has asked for one, are up or being
  // started again, and always with a server that was named. Does not wait. Errors as of
  // PrivateServer::Check.
  absl::Status CheckPrivate();

  // The key of the target that was named: this machine's for "native". InvalidArgument: no preset
  // has that name.
  absl::StatusOr<std::string> TargetKey() const;
  // The same for a filter: "" if no target was named.
  absl::StatusOr<std::string> GivenTargetKey() const;
  // The text form of the target that was named; a key that was given stays a key: only a server
  // with a worker of it knows more. Errors as of TargetKey.
  absl::StatusOr<std::string> TargetText() const;
  // For what is measured: the key, but "native" stays a question to a server that was named: its
  // workers' only target. Errors as of TargetKey; InvalidArgument: a private server's worker, which
  // measures this machine, has another target.
  absl::StatusOr<std::string> TargetForTuning() const;

  // Private server: from now on it has a worker of this machine, also when the session was opened
  // without. Errors as in PrivateServer::StartOrJoin. With a server that was named it does nothing.
  absl::Status StartWorker();
  // Private server: returns once the local worker has registered; `waiting` is called meanwhile and
  // ends the wait by returning false (Cancelled). FailedPrecondition: it does not stay up. Else
  // returns at once.
  absl::Status WaitForWorker(const std::function<bool()>& waiting);

 private:
  explicit Session(const std::string& target) : target_(target) {}

  bool IsNative() const { return target_.empty() || target_ == "native"; }

  const std::string target_;  // as it was named; "" not at all
  target::Target host_;       // this machine
  std::string host_key_;
  std::unique_ptr<client::PrivateServer> private_server_;
  std::unique_ptr<client::PrivateServer> with_worker_;  // joined later
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SESSION_H_

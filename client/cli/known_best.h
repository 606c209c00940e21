#ifndef HONE_CLIENT_CLI_KNOWN_BEST_H_
#define HONE_CLIENT_CLI_KNOWN_BEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/globals.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "common/record/artifact.h"

namespace hone::cli {

// Which stored best a command is about.
struct BestWords {
  std::vector<std::string> words;  // of the workload
  double tolerance = 0;
};

// The words and --tolerance.
void AddBestWords(Command& command, BestWords& words);

// An answer of the store, with what it was asked about. Looking one up starts no worker.
struct KnownBest {
  WorkloadArgument argument;
  std::unique_ptr<Session> session;
  client::Best best;
};

struct LookUpOptions {
  bool nearest = false;  // see client::Connection::LookupBest
  std::string hint;      // of the message when nothing is known; "" none
};

// Opens a session and looks the best up. NotFound: nothing is known; the message says how to tune
// it first. Other errors of ReadWorkloadArgument, Session::Open and the server.
absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, const BestWords& words,
                                     const LookUpOptions& options = {});
absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, WorkloadArgument argument,
                                     double tolerance, const LookUpOptions& options = {});

// What was built and measured for it. Errors of client::Connection::Artifact; InvalidArgument: not
// an artifact.
absl::StatusOr<record::Artifact> ArtifactOf(Session& session, const client::Best& best);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_KNOWN_BEST_H_

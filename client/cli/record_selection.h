#ifndef HONE_CLIENT_CLI_RECORD_SELECTION_H_
#define HONE_CLIENT_CLI_RECORD_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/globals.h"
#include "client/cli/session.h"
#include "client/lib/api.h"

namespace hone::cli {

// Which records a command is about, as they are typed.
struct RecordSelection {
  std::vector<std::string> words;  // a workload
  std::string op;
  std::string job;
  std::string since;
  std::string until;
  std::string outcome;
  bool best = false;
  bool quarantined = false;
  bool not_quarantined = false;
};

void AddSelection(Command& command, RecordSelection& selection);
// InvalidArgument: a workload, an age or an outcome that is none.
absl::StatusOr<client::RecordFilter> ReadSelection(const RecordSelection& selection);
// Adds what needs the server: the target that was named. NotFound: there is no such job.
absl::Status CompleteSelection(Session& session, client::RecordFilter& filter);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORD_SELECTION_H_

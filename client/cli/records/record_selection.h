#ifndef HONE_CLIENT_CLI_RECORDS_RECORD_SELECTION_H_
#define HONE_CLIENT_CLI_RECORDS_RECORD_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"
#include "client/connection/api.h"

namespace hone::cli {

// The options that select records, as typed.
struct RecordSelection {
  std::vector<std::string> words;  // a workload
  std::string op;
  std::string job;
  std::string since;
  std::string until;
  std::string outcome;
  std::string proposer;
  bool best = false;
  bool quarantined = false;
  bool not_quarantined = false;
};

void AddSelection(Command& command, RecordSelection& selection);
// Converts the options. InvalidArgument: a workload, an age or an outcome is malformed.
absl::StatusOr<v1::ListRecordsRequest> ReadSelection(const RecordSelection& selection);
// Adds the target, and checks that the job exists. NotFound: there is no such job.
absl::Status CompleteSelection(Session& session, v1::ListRecordsRequest& filter);

// The number of records of a complete export, from its last line; 0 if the line does not say it.
int64_t RecordsOfExport(absl::string_view last_line);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_RECORD_SELECTION_H_

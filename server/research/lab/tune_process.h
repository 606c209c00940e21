#ifndef HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_
#define HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::lab {

// A run of `hone tune WORDS… --json` with its own store.
struct TuneProcess {
  std::string program_folder;      // contains `hone`
  std::string data_folder;         // the store is hone/hone.db in it
  std::vector<std::string> words;  // what to tune, and options
  // When this text appears on its standard error, it is interrupted twice, so that it ends at once,
  // and any exit status is accepted. "": never.
  std::string interrupt_at = "";
};

// Runs it to its end, passes its standard error on, and returns its standard output. NotFound: it
// cannot be started. Aborted: it had a non-zero exit status or was ended by a signal; the message
// has the command line.
absl::StatusOr<std::string> RunTune(const TuneProcess& process);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_

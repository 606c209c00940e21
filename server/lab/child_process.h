#ifndef HONE_SERVER_LAB_CHILD_PROCESS_H_
#define HONE_SERVER_LAB_CHILD_PROCESS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::lab {

struct ChildOptions {
  std::map<std::string, std::string> environment;  // in addition to this process's environment
  // When this text appears on its standard error, the program is interrupted twice (`hone` then
  // ends at once), and any exit status is accepted. "": never.
  std::string interrupt_at;
};

// Runs a program and returns its standard output; its standard error is passed on. NotFound: it
// cannot be started. Aborted: it had a non-zero exit status or was ended by a signal; the message
// has the command line.
absl::StatusOr<std::string> RunChild(const std::vector<std::string>& words,
                                     const ChildOptions& options);

// Returns the folder of the running program, which also contains `hone`.
std::string ProgramFolder();

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_CHILD_PROCESS_H_

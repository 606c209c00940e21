#ifndef HONE_SERVER_LAB_CHILD_PROCESS_H_
#define HONE_SERVER_LAB_CHILD_PROCESS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::lab {

struct ChildOptions {
  std::map<std::string, std::string> environment;  // added to ours
  // When its error output has this, it is interrupted twice (`hone` then ends at once), and however
  // it ends is right. "": never.
  std::string interrupt_at;
};

// Runs a program to its end and answers what it wrote to its standard output; its error output goes
// where ours does. NotFound: it cannot be started. Aborted: it ended with another exit code than 0,
// or by a signal; the message has the words.
absl::StatusOr<std::string> RunChild(const std::vector<std::string>& words,
                                     const ChildOptions& options);

// The folder of the running program, where `hone` is too.
std::string ProgramFolder();

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_CHILD_PROCESS_H_

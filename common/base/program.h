#ifndef HONE_COMMON_BASE_PROGRAM_H_
#define HONE_COMMON_BASE_PROGRAM_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// The folder of the running program; "." if it is not known.
std::string ProgramDir();

struct ProgramRun {
  std::vector<std::string> words;                       // the path of the program and its arguments
  std::string input = "";                               // its standard input
  std::map<std::string, std::string> environment = {};  // in addition to that of this process
  // Called when it has written to its standard error, with all that it has written so far.
  std::function<void(pid_t program, absl::string_view errors)> on_errors = nullptr;
};

struct ProgramResult {
  int wait_status = 0;  // as waitpid reports it
  std::string output;   // its standard output
  std::string errors;   // its standard error

  bool ok() const { return wait_status == 0; }
};

// Runs a program to its end, however it ends, and until no other process has its standard error
// open. Starts no thread. Errors are those of system calls; NotFound: there is no such program.
absl::StatusOr<ProgramResult> RunProgram(const ProgramRun& run);

}  // namespace hone

#endif  // HONE_COMMON_BASE_PROGRAM_H_

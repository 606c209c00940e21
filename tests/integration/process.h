#ifndef HONE_TESTS_INTEGRATION_PROCESS_H_
#define HONE_TESTS_INTEGRATION_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/temporary_folder.h"

// Runs real programs in tests.
namespace hone::integration {

using Words = std::vector<std::string>;

// Returns `words` followed by `more`.
Words With(Words words, const Words& more);

// The folder of Hone's programs: HONE_BIN_DIR, which ctest sets.
std::string BinDir();

// A TCP port of this machine that nothing uses now.
int FreePort();

// Polls `condition`. Returns false if it does not hold within `limit`.
bool Eventually(const std::function<bool()>& condition, absl::Duration limit = absl::Minutes(2));

// Returns the processes with that name among a process's descendants; "": all of them.
std::vector<pid_t> Descendants(pid_t of, const std::string& name = "");

using Variables = std::map<std::string, std::string>;  // added to the environment

// A program that runs next to the test, with its output in files. The destructor kills it and waits
// for it.
class Process {
 public:
  // argv[0] is a program in BinDir() unless it contains a slash.
  explicit Process(std::vector<std::string> argv, const Variables& variables = {},
                   const std::string& input = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal_number);
  // The exit code, 128 + the signal that ended the program, or -1 if it still runs after `limit`,
  // in which case it is killed.
  int Wait(absl::Duration limit = absl::Seconds(120));
  bool Running();
  // Whether a signal ended the program, not an exit with 128 + its number. After Wait.
  bool EndedBySignal() const;
  std::string Output() const;
  std::string Errors() const;

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

// The result of a program that has ended.
struct Result {
  int code = 0;
  std::string output;
  std::string errors;
};
Result RunProgram(std::vector<std::string> argv, const Variables& variables = {},
                  absl::Duration limit = absl::Seconds(120), const std::string& input = "");

}  // namespace hone::integration

#endif  // HONE_TESTS_INTEGRATION_PROCESS_H_

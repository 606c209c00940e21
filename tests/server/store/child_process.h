#ifndef HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_
#define HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace hone::store {

// A forked copy of the test that runs `body` and exits with what it returns. Made while no other
// thread runs.
class ChildProcess {
 public:
  // `body` gets the writing end of a pipe that ReadLine reads.
  explicit ChildProcess(const std::function<int(int pipe)>& body);
  ~ChildProcess();

  // The next line that the child wrote; "" at the end.
  std::string ReadLine();
  void Kill();
  // The exit status, or minus the signal that ended it.
  int Wait();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string buffer_;
};

// Writes `line` and a newline to the pipe in one piece.
void WriteLine(int pipe, const std::string& line);

// Gives up root, for which no file is read-only. False: it cannot.
bool BecomeOrdinaryUser();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_

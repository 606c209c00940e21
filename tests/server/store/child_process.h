#ifndef HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_
#define HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace hone::store {

// A forked copy of the test that runs `body` and exits with its return value. REQUIRES: no other
// thread runs.
class ChildProcess {
 public:
  // `body` gets the write end of the pipe that ReadLine reads.
  explicit ChildProcess(const std::function<int(int pipe)>& body);
  ~ChildProcess();

  // The next line written by the child, or "" at the end.
  std::string ReadLine();
  void Kill();
  // The exit status, or the negative number of the signal that ended the child.
  int Wait();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string buffer_;
};

// Writes `line` and a newline to the pipe in a single write.
void WriteLine(int pipe, const std::string& line);

// Drops root, which ignores read-only permissions. Returns false if that fails.
bool BecomeOrdinaryUser();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_CHILD_PROCESS_H_

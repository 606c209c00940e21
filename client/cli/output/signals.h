#ifndef HONE_CLIENT_CLI_OUTPUT_SIGNALS_H_
#define HONE_CLIENT_CLI_OUTPUT_SIGNALS_H_

#include <string>

namespace hone::cli {

// Installs the program's signal handlers. While an InterruptCounter exists, SIGINT and SIGTERM go
// to that object instead.
//
// SIGINT (Ctrl-C) ends the program with the exit code 130, other signals end it as usual.
//
// The program continues if the reader of standard error goes away, because its result is still
// wanted. It ends if the reader of standard output goes away. With `json`, a signal that
// ends the program, including a crash, first prints an object with an error to standard output,
// unless SetJsonIsPrinted was called. So scripts never get an empty output.
void HandleSignals(bool json);
// The program calls this once it has printed the object of --json.
void SetJsonIsPrinted();

// A file that is not complete yet. The destructor removes it, and so does a signal that ends the
// program. Only one instance may exist at a time.
class IncompleteFile {
 public:
  explicit IncompleteFile(std::string path);
  ~IncompleteFile();
  IncompleteFile(const IncompleteFile&) = delete;
  IncompleteFile& operator=(const IncompleteFile&) = delete;

 private:
  const std::string path_;
};

// While it exists, counts Ctrl-C (SIGINT) and SIGTERM; the first two do not end the program, the
// third one does. Only one instance may exist at a time.
class InterruptCounter {
 public:
  InterruptCounter();
  ~InterruptCounter();
  InterruptCounter(const InterruptCounter&) = delete;
  InterruptCounter& operator=(const InterruptCounter&) = delete;

  int count() const;
};

// Ends the program with SIGTERM if that is the last signal that an InterruptCounter counted.
void EndByCountedSigterm();

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_SIGNALS_H_

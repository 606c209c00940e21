#ifndef HONE_CLIENT_CLI_INTERRUPT_H_
#define HONE_CLIENT_CLI_INTERRUPT_H_

namespace hone::cli {

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

#endif  // HONE_CLIENT_CLI_INTERRUPT_H_

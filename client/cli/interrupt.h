#ifndef HONE_CLIENT_CLI_INTERRUPT_H_
#define HONE_CLIENT_CLI_INTERRUPT_H_

namespace hone::cli {

// Counts Ctrl-C (and SIGTERM) while it lives instead of ending the program; the third one ends it
// as usual. One at a time.
class InterruptCounter {
 public:
  InterruptCounter();
  ~InterruptCounter();
  InterruptCounter(const InterruptCounter&) = delete;
  InterruptCounter& operator=(const InterruptCounter&) = delete;

  int count() const;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_INTERRUPT_H_

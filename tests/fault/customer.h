#ifndef HONE_TESTS_FAULT_CUSTOMER_H_
#define HONE_TESTS_FAULT_CUSTOMER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/lib/connection.h"
#include "tests/integration/process.h"

namespace hone::fault {

// Somebody who wants kernels: runs `hone tune` on one shape after the other, and when that ends
// without a result looks what became of the job, as a person would: follows it, resumes it, or asks
// anew. Used by one thread.
class Customer {
 public:
  // `address`: the server, through the faults; `shapes`: the words after `hone tune`, taken in
  // turn for ever; `first_seed`: of the first job, whose successors have the next ones.
  Customer(std::string address, std::vector<std::vector<std::string>> shapes, uint64_t first_seed);

  // Looks after the command that runs; starts the next one. `more`: begin with another shape when
  // one is done.
  void Step(client::Connection& direct, bool more);
  // Nothing is wanted any more.
  bool content() const { return process_ == nullptr && !wants_; }
  integration::Process* process() { return process_.get(); }

  int done() const { return done_; }                // shapes that were tuned to the end
  int interrupted() const { return interrupted_; }  // commands that ended without a result
  // Commands that failed without a word.
  const std::vector<std::string>& silent() const { return silent_; }
  std::string wish() const;  // for messages

 private:
  void Run(const std::string& what, std::vector<std::string> words);
  // What to do for the shape that is wanted, by what the server says of it.
  void Pursue(client::Connection& direct);

  const std::string address_;
  const std::vector<std::vector<std::string>> shapes_;
  uint64_t seed_;  // of the job that is wanted, which it is known by
  size_t shape_ = 0;
  bool wants_ = true;
  absl::Time next_;   // not to ask a server that is away all the time
  std::string what_;  // that runs: "tune", "watch" or "resume"
  std::unique_ptr<integration::Process> process_;
  int done_ = 0;
  int interrupted_ = 0;
  std::vector<std::string> silent_;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CUSTOMER_H_

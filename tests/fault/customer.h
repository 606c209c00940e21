#ifndef HONE_TESTS_FAULT_CUSTOMER_H_
#define HONE_TESTS_FAULT_CUSTOMER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/connection/connection.h"
#include "tests/integration/process.h"

namespace hone::fault {

// A user who tunes one shape after the other with `hone tune`. When the command ends without a
// result, checks the job and follows it, resumes it, or starts again. Used by one thread.
class Customer {
 public:
  // `address`: the server, through the faults. `shapes`: arguments of `hone tune`, repeated in
  // turn. `first_seed`: the seed of the first job; each later job adds one. `on_resume` is called
  // with each job that ended without a result before it is resumed.
  Customer(std::string address, std::vector<std::vector<std::string>> shapes, uint64_t first_seed,
           std::function<void(const v1::Job&)> on_resume);

  // Checks the running command and starts the next one. `more`: start another shape after this one.
  void Step(client::Connection& direct, bool more);
  // Whether there is nothing left to do.
  bool content() const { return process_ == nullptr && !wants_; }
  integration::Process* process() { return process_.get(); }

  int done() const { return done_; }                // shapes tuned to the end
  int interrupted() const { return interrupted_; }  // commands that ended without a result
  // Commands that failed without a message.
  const std::vector<std::string>& silent() const { return silent_; }
  std::string wish() const;  // for messages

 private:
  void Run(const std::string& what, std::vector<std::string> words);
  // Continues with the wanted shape, depending on the server's state of the job.
  void Pursue(client::Connection& direct);

  const std::string address_;
  const std::vector<std::vector<std::string>> shapes_;
  const std::function<void(const v1::Job&)> on_resume_;
  uint64_t seed_;  // identifies the wanted job
  size_t shape_ = 0;
  bool wants_ = true;
  absl::Time next_;   // limits how often an unavailable server is asked
  std::string what_;  // the running command: "tune", "watch" or "resume"
  std::unique_ptr<integration::Process> process_;
  int done_ = 0;
  int interrupted_ = 0;
  std::vector<std::string> silent_;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CUSTOMER_H_

#ifndef HONE_TESTS_INTEGRATION_TRANSCRIPT_H_
#define HONE_TESTS_INTEGRATION_TRANSCRIPT_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/integration/process.h"

namespace hone::integration {

// Commands of a test and what they print, as a golden file in the form of
// tests/client/cli/testdata:
// "$ " begins a command, "| " a line of its standard output, "! " one of its standard error, and
// "= " its exit code, if that is not 0. Temporary folders are DIR, keys of targets TARGET, points
// in time TIME. The destructor compares.
class Transcript {
 public:
  // `name`: of the file in testdata. `command`: the first words of every command.
  explicit Transcript(std::string name, Words command = {}, Variables variables = {})
      : name_(std::move(name)), command_(std::move(command)), variables_(std::move(variables)) {}
  ~Transcript();
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  // Replaces a text that differs between machines or runs, also in what was added before.
  void Replace(const std::string& text, const std::string& word);
  Result Run(const Words& words);
  // A command that was run otherwise.
  void Add(const std::string& command, const Result& result);

 private:
  void AddLines(const std::string& mark, const std::string& text);

  const std::string name_;
  const Words command_;
  const Variables variables_;
  std::vector<std::pair<std::string, std::string>> replaced_;
  std::string text_;
};

}  // namespace hone::integration

#endif  // HONE_TESTS_INTEGRATION_TRANSCRIPT_H_

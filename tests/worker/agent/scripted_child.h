#ifndef HONE_TESTS_WORKER_AGENT_SCRIPTED_CHILD_H_
#define HONE_TESTS_WORKER_AGENT_SCRIPTED_CHILD_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::agent {

// A shell script that plays hone-runner or hone-builder: it keeps every request and gives each the
// same answer.
class ScriptedChild {
 public:
  // `folder` is made for the script and its files. If `once` is set, a process of the script takes
  // no more input after its first request, and ends after the answer.
  ScriptedChild(const std::string& folder, const std::string& answer, bool once = false)
      : folder_(folder) {
    std::filesystem::create_directory(folder_);
    std::string frame;
    for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(answer.size() >> 8 * i));
    std::ofstream(folder_ + "/answer") << frame << answer;
    std::ofstream(path()) << "#!/bin/sh\ncd " << folder_
                          << " || exit 1\n"
                             "while true; do\n"
                             "  size=$(head -c 4 | od -An -tu4)\n"
                             "  [ -n \"$size\" ] || exit 0\n"
                             "  head -c $size > sent-$(ls | grep -c ^sent-)\n"
                          << (once ? "  exec < /dev/null\n" : "") << "  cat answer\ndone\n";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }

  std::string path() const { return folder_ + "/child"; }
  // The requests that all processes of the script have received, in order.
  std::vector<std::string> Requests() const {
    std::vector<std::string> requests;
    for (;;) {
      absl::StatusOr<std::string> next = ReadFile(absl::StrCat(folder_, "/sent-", requests.size()));
      if (!next.ok()) return requests;
      requests.push_back(*std::move(next));
    }
  }

 private:
  const std::string folder_;
};

}  // namespace hone::agent

#endif  // HONE_TESTS_WORKER_AGENT_SCRIPTED_CHILD_H_

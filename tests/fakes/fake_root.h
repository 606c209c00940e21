#ifndef HONE_TESTS_FAKES_FAKE_ROOT_H_
#define HONE_TESTS_FAKES_FAKE_ROOT_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_folder.h"

namespace hone {

// A temporary folder that stands for / in code that reads /proc and /sys.
class FakeRoot : public TemporaryFolder {
 public:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(*this / path).parent_path());
    std::ofstream(*this / path) << text;
  }
  // Adds a process whose threads are in these states.
  void AddProcess(int pid, const std::string& name, const std::string& states) const {
    const std::string folder = "/proc/" + std::to_string(pid);
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string thread = std::to_string(pid + static_cast<int>(i));
      const std::string line = thread + " (" + name + ") " + states[i] +
                               (name == "kworker" ? " 2" : " 1") +
                               " 1342 1342 0 -1 4194304 52059 0 0 0 483 30 0 0 30 10 1 0 193429\n";
      if (i == 0) Write(folder + "/stat", line);
      Write(folder + "/task/" + thread + "/stat", line);
    }
  }
};

}  // namespace hone

#endif  // HONE_TESTS_FAKES_FAKE_ROOT_H_

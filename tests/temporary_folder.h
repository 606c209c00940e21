#ifndef HONE_TESTS_TEMPORARY_FOLDER_H_
#define HONE_TESTS_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace hone {

// A new folder of this test alone, because tests run at the same time and in the same folder. Its
// path is short enough for a socket's. The destructor deletes it with its contents.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& parent = "/tmp")
      : path_(parent + "/hone_test_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace hone

#endif  // HONE_TESTS_TEMPORARY_FOLDER_H_

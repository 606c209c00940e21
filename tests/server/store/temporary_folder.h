#ifndef HONE_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_
#define HONE_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace hone::store {

// A new temporary folder. The destructor deletes it with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "hone_store_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_

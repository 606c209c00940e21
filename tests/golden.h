#ifndef HONE_TESTS_GOLDEN_H_
#define HONE_TESTS_GOLDEN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hone {

// The content of a file, or "" if there is none. The path is relative to the repository.
inline std::string ReadGolden(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

// The names of the files in a folder, without ".txt", in order.
inline std::vector<std::string> GoldenNames(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

// Replaces the points in time of a text by TIME.
inline std::string WithoutTimes(const std::string& text) {
  static const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(, [0-9]+ [a-z]+ ago)?");
  return std::regex_replace(text, time, "TIME");
}

// Compares a text with a golden file. HONE_UPDATE_GOLDEN=1 writes the text into the file first;
// check the difference before you commit it.
inline void ExpectGolden(const std::string& path, const std::string& text) {
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(ReadGolden(path), text)
      << path << ": if the change is intended, run with HONE_UPDATE_GOLDEN=1";
}

// A golden file of several texts, each below a heading. The destructor compares.
class GoldenTexts {
 public:
  explicit GoldenTexts(std::string path) : path_(std::move(path)) {}
  ~GoldenTexts() { ExpectGolden(path_, all_); }
  GoldenTexts(const GoldenTexts&) = delete;
  GoldenTexts& operator=(const GoldenTexts&) = delete;

  void Add(const std::string& heading, const std::string& text) {
    all_ += (all_.empty() ? "== " : "\n== ") + heading + "\n" + text;
  }

 private:
  const std::string path_;
  std::string all_;
};

}  // namespace hone

#endif  // HONE_TESTS_GOLDEN_H_

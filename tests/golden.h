#ifndef HONE_TESTS_GOLDEN_H_
#define HONE_TESTS_GOLDEN_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

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
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Replaces the points in time of a text by TIME.
inline std::string WithoutTimes(const std::string& text) {
  static const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(, [0-9]+ [a-z]+ ago)?");
  return std::regex_replace(text, time, "TIME");
}

// Replaces the version of a text by VERSION.
inline std::string WithoutVersion(const std::string& text) {
  static const std::regex version("Hone [0-9]+([.][0-9]+)+");
  return std::regex_replace(text, version, "Hone VERSION");
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

// The texts of the running test, in a golden file that the tests of its source file share: each has
// a part below its name. That of a/b_test.cc is a/testdata/golden/b.txt. The destructor compares;
// HONE_UPDATE_GOLDEN=1 replaces this part first. (To be rid of the parts of tests that are gone,
// remove the file before.)
class GoldenOfTest {
 public:
  GoldenOfTest() {
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    const std::string source = test->file();
    const std::filesystem::path path = source.substr(source.rfind("tests/"));
    const std::string stem = path.stem();
    path_ = path.parent_path() / "testdata/golden" / (stem.substr(0, stem.rfind('_')) + ".txt");
    name_ = std::string(test->test_suite_name()) + "." + test->name();
  }
  ~GoldenOfTest() {
    if (testing::Test::HasFatalFailure()) return;
    if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) Update();
    EXPECT_EQ(Read()[name_], text_)
        << path_ << ": if the change is intended, run with HONE_UPDATE_GOLDEN=1";
  }
  GoldenOfTest(const GoldenOfTest&) = delete;
  GoldenOfTest& operator=(const GoldenOfTest&) = delete;

  // From now on, a text that is not the same everywhere, such as a path, stands as a word.
  void Name(const std::string& text, const std::string& word) { words_.emplace_back(text, word); }
  // Adds lines.
  void Add(absl::string_view lines) {
    std::string text(lines);
    for (const auto& [from, to] : words_) {
      for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
        text.replace(at, from.size(), to);
    }
    text_ += text + (text.ends_with('\n') ? "" : "\n");
  }
  void Add(const std::string& what, absl::string_view lines) {
    Add(what + (lines.find('\n') == lines.npos ? ": " : ":\n") + std::string(lines));
  }

 private:
  std::map<std::string, std::string> Read() const {
    std::map<std::string, std::string> parts;
    std::ifstream file(path_);
    std::string* part = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("== ")) {
        if (part != nullptr && !part->empty()) part->pop_back();  // the empty line between parts
        part = &parts[line.substr(3)];
      } else if (part != nullptr) {
        *part += line + "\n";
      }
    }
    return parts;
  }
  // Tests may run in several processes at the same time.
  void Update() const {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ::flock(file, LOCK_EX);
    auto parts = Read();
    parts[name_] = text_;
    std::string all;
    for (const auto& [name, text] : parts)
      all += (all.empty() ? "== " : "\n== ") + name + "\n" + text;
    std::ofstream(path_) << all;
    ::close(file);
  }

  std::string path_, name_, text_;
  std::vector<std::pair<std::string, std::string>> words_;
};

}  // namespace hone

#endif  // HONE_TESTS_GOLDEN_H_

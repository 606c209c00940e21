// Files and folders that documents name exist, so that a reader finds what they describe.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::architecture {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr const char* kTops[] = {"proto", "common", "server", "worker", "client",
                                 "cmake", "deploy", "docker", "docs",   "tests"};

// Paths of the source tree; those of folders end with a slash.
std::set<std::string> ReadPaths() {
  std::set<std::string> paths = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"};
  for (const char* const top : kTops) {
    paths.insert(absl::StrCat(top, "/"));
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top))
      paths.insert(absl::StrCat(entry.path().generic_string(), entry.is_directory() ? "/" : ""));
  }
  return paths;
}

// Whether a path is `name`, or ends with it: documents leave out the first folders.
bool IsThere(const std::set<std::string>& paths, const std::string& name) {
  if (paths.contains(name)) return true;
  const std::string end = absl::StrCat("/", name);
  for (const std::string& path : paths)
    if (absl::EndsWith(path, end)) return true;
  return false;
}

// Whether a folder or a file has this path without the end of its name.
bool IsStem(const std::set<std::string>& paths, const std::string& path) {
  if (paths.contains(absl::StrCat(path, "/"))) return true;
  const auto file = paths.lower_bound(absl::StrCat(path, "."));
  return file != paths.end() && absl::StartsWith(*file, absl::StrCat(path, "."));
}

// One line for each name of a source file in `code`, and each link to a file, that leads nowhere.
// `path` is the document's. Names with capital letters (NAME.cc) stand for others. A path that
// begins with a room may leave out the end of the file's name (common/ir/program).
std::vector<std::string> DeadNames(const std::set<std::string>& paths, const std::string& path,
                                   const std::string& text) {
  static const auto* const name =
      new std::regex(R"(`((?:[a-z0-9_.-]+/)*[a-z0-9_-]+\.(?:cc|h|c|py|sh|proto|cmake)|)"
                     R"((?:[a-z0-9_-]+/)+)`|\]\(([^)#:]+)(?:#[^)]*)?\)|)"
                     R"(`((?:proto|common|server|worker|client)/[a-z0-9_/]*[a-z0-9_])`)");
  std::vector<std::string> dead;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    for (std::sregex_iterator found(line.begin(), line.end(), *name), end; found != end; ++found) {
      const std::string file = (*found)[1], link = (*found)[2], part = (*found)[3];
      const std::string target =
          (fs::path(path).parent_path() / link).lexically_normal().generic_string();
      const bool is_there =
          !file.empty()   ? IsThere(paths, std::string(absl::StripPrefix(file, "./")))
          : !part.empty() ? IsStem(paths, part)
                          : paths.contains(target) || paths.contains(absl::StrCat(target, "/"));
      if (!is_there) dead.push_back(absl::StrCat(path, ":", number, " names ", file, link, part));
    }
  }
  return dead;
}

TEST(DocumentsTest, NameFilesThatExist) {
  const std::set<std::string> paths = ReadPaths();
  ASSERT_TRUE(paths.contains("tests/architecture/documents_test.cc"))
      << "the test must run in the source root";
  std::vector<std::string> dead;
  for (const std::string& path : paths) {
    // Benchmarks name files of other programs, the log of changes files that are gone.
    if (!absl::EndsWith(path, ".md") || absl::StartsWith(path, "tests/bench/")) continue;
    if (path == "CHANGELOG.md") continue;
    std::ifstream in(path);
    for (const std::string& line : DeadNames(
             paths, path, {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}))
      dead.push_back(line);
  }
  EXPECT_TRUE(dead.empty()) << absl::StrJoin(dead, "\n");
}

TEST(DocumentsTest, DeadNamesAreFound) {
  const std::set<std::string> paths = {"common/", "common/ir/", "common/ir/program.cc",
                                       "common/README.md"};
  const auto dead = [&](const std::string& text) {
    return DeadNames(paths, "common/README.md", text);
  };
  EXPECT_THAT(
      dead("`common/ir/program.cc`, `ir/program.cc`, `program.cc`, `ir/`, [a](ir/program.cc) "
           "[b](ir) [c](../common/ir/program.cc#part) [d](https://a.example/b.cc) `NAME.cc`"),
      IsEmpty());
  EXPECT_THAT(dead("\n`programs.cc`"),
              ElementsAre(HasSubstr("common/README.md:2 names programs.cc")));
  EXPECT_THAT(dead("`am.cc`"), ElementsAre(HasSubstr("am.cc")));
  EXPECT_THAT(dead("`common/ir/program`, `common/ir`, `common/ir/prog`"),
              ElementsAre(HasSubstr("names common/ir/prog")));
  EXPECT_THAT(dead("`rule/`, [a](ir/program.h)"),
              ElementsAre(HasSubstr("rule/"), HasSubstr("ir/program.h")));
}

}  // namespace
}  // namespace hone::architecture

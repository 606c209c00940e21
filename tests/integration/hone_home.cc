#include "tests/integration/hone_home.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gtest/gtest.h"

namespace hone::integration {

HoneHome::~HoneHome() {
  EXPECT_TRUE(Eventually([this] { return Keeper() == 0; }))
      << "the private server is still running";
}

Result HoneHome::Hone(std::vector<std::string> words, absl::Duration limit) const {
  words.insert(words.begin(), "hone");
  return RunProgram(std::move(words), variables(), limit);
}

pid_t HoneHome::Keeper() const {
  const std::string path = data_dir() + "/private.lock";
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return 0;
  const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  if (free) return 0;
  int pid = -1;  // locked, but the pid is not written yet
  for (absl::string_view line : absl::StrSplit(ReadFile(path).value_or(""), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 2 && words[0] == "keeper" && !absl::SimpleAtoi(words[1], &pid)) pid = -1;
  }
  return pid;
}

pid_t HoneHome::ChildOfKeeper(const std::string& program) const {
  const pid_t keeper = Keeper();
  if (keeper <= 0) return 0;
  // The kernel truncates process names to 15 characters. The names of Hone's programs are shorter.
  const std::string children =
      ReadFile(absl::StrCat("/proc/", keeper, "/task/", keeper, "/children")).value_or("");
  for (absl::string_view word : absl::StrSplit(children, ' ', absl::SkipWhitespace())) {
    const std::string name = ReadFile(absl::StrCat("/proc/", word, "/comm")).value_or("");
    int pid = 0;
    if (absl::StripAsciiWhitespace(name) == program && absl::SimpleAtoi(word, &pid)) return pid;
  }
  return 0;
}

nlohmann::json OneLineOfJson(const std::string& output) {
  if (std::count(output.begin(), output.end(), '\n') != 1 || output.back() != '\n')
    return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
}

}  // namespace hone::integration

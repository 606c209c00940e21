#include "client/cli/busy_processes.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::cli {
namespace {

// The names of a folder's entries that are numbers. Processes may end meanwhile.
std::vector<int> NumbersIn(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    int number = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &number)) numbers.push_back(number);
  }
  return numbers;
}

// Reads a line such as "17 (cc1plus) R 1 …" of /proc. Returns whether the thread is busy.
bool IsBusy(const std::string& stat_path, std::string& name) {
  const absl::StatusOr<std::string> line = ReadFile(stat_path);
  if (!line.ok()) return false;
  const size_t begin = line->find('('), end = line->rfind(") ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return false;
  name = line->substr(begin + 1, end - begin - 1);
  for (char& c : name) {
    const bool plain =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 || absl::StrContains("-_.+:", c);
    if (!plain) c = '?';
  }
  const char state = end + 2 < line->size() ? (*line)[end + 2] : ' ';
  return state == 'R' || state == 'D';
}

}  // namespace

std::vector<BusyProcess> BusyProcesses(const std::string& root) {
  std::vector<BusyProcess> busy;
  for (const int pid : NumbersIn(root + "/proc")) {
    if (pid == getpid()) continue;
    const std::string folder = absl::StrCat(root, "/proc/", pid);
    BusyProcess process{.pid = pid};
    std::string thread_name;
    for (const int thread : NumbersIn(folder + "/task")) {
      if (IsBusy(absl::StrCat(folder, "/task/", thread, "/stat"), thread_name)) ++process.threads;
    }
    if (process.threads == 0) continue;
    IsBusy(folder + "/stat", process.name);
    // Hone's own programs take turns with measurements.
    if (absl::StartsWith(process.name, "hone")) continue;
    busy.push_back(std::move(process));
  }
  std::sort(busy.begin(), busy.end(), [](const BusyProcess& a, const BusyProcess& b) {
    return a.threads != b.threads ? a.threads > b.threads : a.pid < b.pid;
  });
  return busy;
}

}  // namespace hone::cli

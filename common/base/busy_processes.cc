#include "common/base/busy_processes.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"

namespace hone {
namespace {

constexpr int kInit = 1;
constexpr int kKernelThreads = 2;    // kthreadd, the parent of all kernel threads
constexpr size_t kKernelsName = 15;  // the kernel truncates names to this length

// Returns the entries of a folder whose names are numbers: processes or threads. Errors are
// ignored, because the folder disappears when its process ends.
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

// A process or thread, parsed from its line in /proc: "17 (cc1plus) R 1 …".
struct Stat {
  std::string name;
  bool busy = false;
  int parent = 0;  // the parent of the process
};

Stat ReadStat(const std::string& stat_path) {
  Stat stat;
  const absl::StatusOr<std::string> line = ReadFile(stat_path);
  if (!line.ok()) return stat;
  const size_t begin = line->find('('), end = line->rfind(") ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return stat;
  stat.name = line->substr(begin + 1, end - begin - 1);
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*line).substr(end + 2), ' ');
  stat.busy = fields[0] == "R" || fields[0] == "D";
  if (fields.size() > 1 && !absl::SimpleAtoi(fields[1], &stat.parent)) stat.parent = 0;
  return stat;
}

// Returns the full name of a process. `name` is its name in /proc. If that is truncated, a word of
// the command line (the program or a script) contains the full name, unless the process has changed
// its name.
std::string FullName(const std::string& name, const std::string& folder) {
  if (name.size() < kKernelsName) return name;
  const absl::StatusOr<std::string> line = ReadFile(folder + "/cmdline");
  if (!line.ok()) return name;
  for (const absl::string_view word : absl::StrSplit(*line, '\0')) {
    const size_t slash = word.rfind(absl::StrCat("/", name));
    absl::string_view base = slash == absl::string_view::npos ? word : word.substr(slash + 1);
    base = base.substr(0, base.find(' '));  // some processes add a description of their state
    if (absl::StartsWith(base, name) && !absl::StrContains(base, '/')) return std::string(base);
  }
  return name;
}

// Replaces unusual characters; see BusyProcess::name.
std::string Plain(std::string name) {
  for (char& c : name) {
    const bool plain =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 || absl::StrContains("-_.+:", c);
    if (!plain) c = '?';
  }
  return name;
}

}  // namespace

std::vector<BusyProcess> BusyProcesses(const std::string& root) {
  std::vector<BusyProcess> busy;
  for (const int pid : NumbersIn(root + "/proc")) {
    if (pid == getpid() || pid == kInit || pid == kKernelThreads) continue;
    const std::string folder = absl::StrCat(root, "/proc/", pid);
    BusyProcess process{.pid = pid};
    for (const int thread : NumbersIn(folder + "/task")) {
      if (ReadStat(absl::StrCat(folder, "/task/", thread, "/stat")).busy) ++process.threads;
    }
    if (process.threads == 0) continue;
    const Stat stat = ReadStat(folder + "/stat");
    if (stat.parent == kKernelThreads) continue;
    process.name = Plain(FullName(stat.name, folder));
    // Hone's own programs do not disturb measurements (common/base/host_lock.h).
    if (absl::StartsWith(process.name, "hone")) continue;
    busy.push_back(std::move(process));
  }
  std::sort(busy.begin(), busy.end(), [](const BusyProcess& a, const BusyProcess& b) {
    return a.threads != b.threads ? a.threads > b.threads : a.pid < b.pid;
  });
  return busy;
}

}  // namespace hone

#include "tests/integration/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/file.h"

namespace hone::integration {

Words With(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string BinDir() {
  const char* dir = std::getenv("HONE_BIN_DIR");
  return dir == nullptr ? "build/release/bin" : dir;
}

bool Eventually(const std::function<bool()>& condition, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (absl::Now() < deadline) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return condition();
}

std::vector<pid_t> Descendants(pid_t of, const std::string& name) {
  std::multimap<pid_t, std::pair<pid_t, std::string>> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string stat = ReadFile(entry.path() / "stat").value_or("");
    const size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    const std::vector<std::string> rest = absl::StrSplit(stat.substr(close + 2), ' ');
    int parent = 0;
    if (rest.size() < 2 || rest[0] == "Z" || !absl::SimpleAtoi(rest[1], &parent)) continue;
    children.emplace(parent, std::pair(pid, stat.substr(open + 1, close - open - 1)));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> look = {of};
  while (!look.empty()) {
    const auto [begin, end] = children.equal_range(look.back());
    look.pop_back();
    for (auto it = begin; it != end; ++it) {
      look.push_back(it->second.first);
      if (name.empty() || it->second.second == name) found.push_back(it->second.first);
    }
  }
  return found;
}

Process::Process(std::vector<std::string> argv, const Variables& variables,
                 const std::string& input) {
  if (!absl::StrContains(argv[0], '/')) argv[0] = absl::StrCat(BinDir(), "/", argv[0]);
  if (!WriteFileAtomically(folder_ / "in", input).ok()) std::abort();
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  dup2(open((folder_ / "in").c_str(), O_RDONLY), STDIN_FILENO);
  dup2(open((folder_ / "out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
  dup2(open((folder_ / "err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
  execv(words[0], words.data());
  _exit(127);
}

Process::~Process() {
  if (Running()) {
    Signal(SIGKILL);
    Wait();
  }
}

void Process::Signal(int signal_number) { kill(pid_, signal_number); }

bool Process::Running() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return !ended_;
}

int Process::Wait(absl::Duration limit) {
  if (!Eventually([this] { return !Running(); }, limit)) {
    Signal(SIGKILL);
    waitpid(pid_, &status_, 0);
    ended_ = true;
    return -1;
  }
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

bool Process::EndedBySignal() const { return WIFSIGNALED(status_); }

std::string Process::Output() const { return ReadFile(folder_ / "out").value_or(""); }
std::string Process::Errors() const { return ReadFile(folder_ / "err").value_or(""); }

Result RunProgram(std::vector<std::string> argv, const Variables& variables, absl::Duration limit,
                  const std::string& input) {
  Process process(std::move(argv), variables, input);
  const int code = process.Wait(limit);
  return {code, process.Output(), process.Errors()};
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace hone::integration

#include "tests/fault/cluster.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::fault {
namespace {

using integration::BinDir;
using integration::Process;
namespace fs = std::filesystem;

constexpr absl::Duration kEndLimit = absl::Seconds(20);
constexpr size_t kLastWords = 2000;

// Two machines that do everything, one that only compiles, and a thin board.
const std::vector<std::pair<std::string, std::vector<std::string>>>& Workers() {
  static const auto* const workers =
      new std::vector<std::pair<std::string, std::vector<std::string>>>{
          {"desk-1", {"--build-slots", "1"}},
          {"desk-2", {"--build-slots", "1"}},
          {"builder", {"--build-slots", "1", "--build-only"}},
          {"board", {"--run-only"}}};
  return *workers;
}

void WriteShift(const std::string& file, int64_t nanoseconds) {
  std::FILE* const out = std::fopen(file.c_str(), "r+b");
  if (out == nullptr) return;
  std::fwrite(&nanoseconds, sizeof(nanoseconds), 1, out);
  std::fclose(out);
}

}  // namespace

std::vector<pid_t> Descendants(pid_t of, const std::string& name) {
  std::multimap<pid_t, std::pair<pid_t, std::string>> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
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

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const std::string& folder, Ledger* ledger) {
  auto cluster = std::unique_ptr<Cluster>(new Cluster(folder));
  const std::string programs = folder + "/programs";
  HONE_RETURN_IF_ERROR(MakeDirectories(programs));
  HONE_RETURN_IF_ERROR(MakeDirectories(folder + "/store"));
  std::error_code error;
  fs::create_symlink(fs::absolute(BinDir()) / "hone-builder", programs + "/hone-builder", error);
  fs::create_symlink(SIM_RUNNER, programs + "/hone-runner", error);
  const std::string tap = "unix:" + folder + "/tap.sock";
  HONE_ASSIGN_OR_RETURN(cluster->tap_, MessageTap::Start(tap, cluster->server_address(), ledger));
  HONE_ASSIGN_OR_RETURN(cluster->worker_proxy_, TcpProxy::Start(folder + "/tap.sock"));
  HONE_ASSIGN_OR_RETURN(cluster->client_proxy_, TcpProxy::Start(folder + "/server.sock"));
  cluster->AddMember("server", {BinDir() + "/hone-server", "--listen", cluster->server_address(),
                                "--store", cluster->store()});
  for (const auto& [name, more] : Workers()) {
    // Each worker has its own timing lock, because the fleet simulates separate machines.
    std::vector<std::string> argv = {BinDir() + "/hone-worker",
                                     "--server",
                                     cluster->worker_proxy_->address(),
                                     "--name",
                                     name,
                                     "--state-dir",
                                     folder + "/" + name,
                                     "--program-dir",
                                     programs,
                                     "--lock",
                                     folder + "/" + name + ".lock"};
    argv.insert(argv.end(), more.begin(), more.end());
    cluster->AddMember(name, std::move(argv));
  }
  for (Member& member : cluster->members_) cluster->StartMember(member);
  return cluster;
}

void Cluster::AddMember(const std::string& name, std::vector<std::string> argv) {
  Member member{.name = name, .argv = std::move(argv), .clock_file = folder_ + "/clock-" + name};
  std::ofstream(member.clock_file) << std::string(sizeof(int64_t), '\0');
  members_.push_back(std::move(member));
}

void Cluster::KeepLog(const Member& member) {
  std::ofstream(folder_ + "/" + member.name + ".log", std::ios::app) << member.process->Errors();
}

void Cluster::StartMember(Member& member) {
  if (member.process != nullptr) KeepLog(member);
  std::vector<std::string> argv = {"/usr/bin/setpriv", "--pdeathsig", "KILL"};
  argv.insert(argv.end(), member.argv.begin(), member.argv.end());
  member.process = std::make_unique<Process>(
      std::move(argv),
      integration::Variables{{"LD_PRELOAD", CLOCK_SHIFT}, {"CLOCK_SHIFT_FILE", member.clock_file}});
  member.expected_end = false;
  ++member.starts;
}

void Cluster::Surprise(Member& member, const std::string& what) {
  std::string words = member.process->Errors();
  if (words.size() > kLastWords) words.erase(0, words.size() - kLastWords);
  surprises_.push_back(absl::StrCat(member.name, " ", what, ": ", words));
}

// A server that cannot open its store exits with a message, and its unit restarts it.
bool Cluster::MetAFullDisk(const Member& member) const {
  return &member == &members_[0] &&
         absl::StrContains(member.process->Errors(), "free space on the disk of " + store());
}

void Cluster::Supervise() {
  for (Member& member : members_) {
    if (member.process->Running() || absl::Now() < member.start_at) continue;
    if (!member.expected_end && !MetAFullDisk(member)) {
      Surprise(member, absl::StrCat("ended by itself with ", member.process->Wait()));
    }
    StartMember(member);
  }
}

void Cluster::Kill(Member& member, absl::Duration pause) {
  member.expected_end = true;
  member.start_at = absl::Now() + pause;
  member.process->Signal(SIGKILL);
  member.process->Wait(kEndLimit);
}

void Cluster::Shutdown() {
  for (size_t i = members_.size(); i-- > 0;) {  // the server last
    Member& member = members_[i];
    if (!member.process->Running()) continue;
    member.process->Signal(SIGCONT);
    member.process->Signal(SIGTERM);
    const int code = member.process->Wait(kEndLimit);
    if (code != 0) Surprise(member, absl::StrCat("ended with ", code, " when it was asked to"));
    KeepLog(member);
  }
}

void Cluster::ShiftClock(const Member& member, absl::Duration shift) {
  WriteShift(member.clock_file, absl::ToInt64Nanoseconds(shift));
}

}  // namespace hone::fault

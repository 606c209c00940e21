#include "tests/fault/cluster.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
// Between the end of a server or a database with an error and its restart.
constexpr absl::Duration kRestartPause = absl::Milliseconds(500);
constexpr int kFailureCode = 1;  // of hone-server
constexpr size_t kDatabaseWords = 600;
constexpr int64_t kDatabaseDisk = int64_t{160} << 20;

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

std::string LastLine(const std::string& text) {
  const absl::string_view words = absl::StripAsciiWhitespace(text);
  const size_t end = words.rfind('\n');
  return std::string(end == absl::string_view::npos ? words : words.substr(end + 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const std::string& folder, Ledger* ledger,
                                                        StoreKind store) {
  auto cluster = std::unique_ptr<Cluster>(new Cluster(folder));
  const std::string programs = folder + "/programs";
  HONE_RETURN_IF_ERROR(MakeDirectories(programs));
  std::error_code error;
  fs::create_symlink(fs::absolute(BinDir()) / "hone-builder", programs + "/hone-builder", error);
  fs::create_symlink(SIM_RUNNER, programs + "/hone-runner", error);
  if (store == StoreKind::kSqlite) {
    HONE_RETURN_IF_ERROR(MakeDirectories(folder + "/store"));
    cluster->store_place_ = folder + "/store/hone.db";
    HONE_RETURN_IF_ERROR(cluster->AddServer("server", ledger));
  } else {
    HONE_RETURN_IF_ERROR(cluster->StartDatabase());
    for (const char* const name : {"server-1", "server-2"}) {
      HONE_RETURN_IF_ERROR(cluster->AddServer(name, ledger));
    }
  }
  const std::string servers =
      absl::StrJoin(cluster->networks_, ",", [](std::string* out, const Network& network) {
        absl::StrAppend(out, network.workers->address());
      });
  for (const auto& [name, more] : Workers()) {
    // Each worker has its own timing lock, because the fleet simulates separate machines.
    std::vector<std::string> argv = {BinDir() + "/hone-worker",
                                     "--server",
                                     servers,
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

absl::Status Cluster::StartDatabase() {
  HONE_ASSIGN_OR_RETURN(database_, store::PostgresServer::Make(kDatabaseDisk));
  HONE_ASSIGN_OR_RETURN(store_place_, database_->DatabaseOf(kDatabase));
  return absl::OkStatus();
}

absl::Status Cluster::AddServer(const std::string& name, Ledger* ledger) {
  std::string store = store_place_;
  Network& network = networks_.emplace_back();
  if (database_ != nullptr) {
    HONE_ASSIGN_OR_RETURN(network.database, TcpProxy::Start(database_->socket()));
    store = absl::StrCat("postgresql://hone@", network.database->address(), "/", kDatabase);
  }
  const std::string tap = absl::StrCat(folder_, "/tap-", name, ".sock");
  AddMember(name, {});
  const std::string socket = SocketOf(members_.back());
  members_.back().argv = {BinDir() + "/hone-server", "--listen", "unix:" + socket, "--store",
                          store};
  HONE_ASSIGN_OR_RETURN(network.tap, MessageTap::Start("unix:" + tap, "unix:" + socket, ledger));
  HONE_ASSIGN_OR_RETURN(network.workers, TcpProxy::Start(tap));
  HONE_ASSIGN_OR_RETURN(network.clients, TcpProxy::Start(socket));
  return absl::OkStatus();
}

std::string Cluster::SocketOf(const Member& server) const {
  return absl::StrCat(folder_, "/", server.name, ".sock");
}

std::string Cluster::server_address() const {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < servers(); ++i) addresses.push_back("unix:" + SocketOf(members_[i]));
  return absl::StrJoin(addresses, ",");
}

std::string Cluster::client_address() const {
  return absl::StrJoin(networks_, ",", [](std::string* out, const Network& network) {
    absl::StrAppend(out, network.clients->address());
  });
}

// A leader that was stopped or cut off may still say that it serves when the next one leads.
size_t Cluster::leader() {
  absl::Time since = absl::InfinitePast();
  for (size_t i = 0; i < servers(); ++i) {
    const absl::Time serves = networks_[i].tap->serves_since();
    if (serves == absl::InfiniteFuture() || serves < since) continue;
    since = serves;
    leader_ = i;
  }
  return leader_;
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

bool Cluster::WasEndedByAnError(Member& member) {
  const bool is_server = &member < &members_[0] + servers();
  if (!is_server || member.process->Wait() != kFailureCode) return false;
  restarts_.push_back(
      {Intervention::Kind::kRestart, absl::Now(), member.name, LastLine(member.process->Errors())});
  member.expected_end = true;
  member.start_at = absl::Now() + kRestartPause;
  return true;
}

void Cluster::SuperviseDatabase() {
  const bool is_due = absl::Now() >= database_start_at_;
  if (database_->Running()) {
    if (is_due) database_was_killed_ = false;
    return;
  }
  if (!is_due) return;
  if (!database_was_killed_) {
    std::string words = database_->Log();
    if (words.size() > kDatabaseWords) words.erase(0, words.size() - kDatabaseWords);
    restarts_.push_back({Intervention::Kind::kRestart, absl::Now(), "the database", words});
    database_start_at_ = absl::Now() + kRestartPause;
    database_was_killed_ = true;
    return;
  }
  database_->Launch();
}

void Cluster::Supervise() {
  if (database_ != nullptr) SuperviseDatabase();
  for (Member& member : members_) {
    if (member.process->Running() || absl::Now() < member.start_at) continue;
    if (!member.expected_end) {
      if (WasEndedByAnError(member)) continue;
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

void Cluster::KillDatabase(absl::Duration pause) {
  database_was_killed_ = true;
  database_start_at_ = absl::Now() + pause;
  database_->Kill();
}

void Cluster::CalmNetworks() {
  for (Network& network : networks_) {
    network.workers->SetWeather({});
    network.clients->SetWeather({});
    if (network.database != nullptr) network.database->SetWeather({});
  }
}

void Cluster::Shutdown() {
  for (size_t i = members_.size(); i-- > 0;) {  // the servers last
    Member& member = members_[i];
    if (!member.process->Running()) continue;
    member.process->Signal(SIGCONT);
    member.process->Signal(SIGTERM);
    const int code = member.process->Wait(kEndLimit);
    if (code != 0) Surprise(member, absl::StrCat("ended with ", code, " when it was asked to"));
    KeepLog(member);
  }
}

void Cluster::EndDatabase() {
  if (database_ == nullptr) return;
  std::ofstream(folder_ + "/database.log") << database_->Log();
  database_.reset();
}

void Cluster::ShiftClock(const Member& member, absl::Duration shift) {
  WriteShift(member.clock_file, absl::ToInt64Nanoseconds(shift));
}

}  // namespace hone::fault

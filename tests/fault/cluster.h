#ifndef HONE_TESTS_FAULT_CLUSTER_H_
#define HONE_TESTS_FAULT_CLUSTER_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/fault/message_tap.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/integration/process.h"

namespace hone::fault {

// A program that is restarted when it ends, as by an init system, and may be hit by faults.
struct Member {
  std::string name;
  std::vector<std::string> argv;
  std::string clock_file;  // shifts its clock, and its children's
  std::unique_ptr<integration::Process> process;
  bool expected_end = false;  // the test killed it
  absl::Time start_at;        // when to restart it, once it has ended
  int starts = 0;
};

// A server, workers, and the network between them. Workers reach the server through a TCP proxy and
// the tap, clients through another TCP proxy. Used by one thread, which starts the programs; they
// are killed when it ends.
class Cluster {
 public:
  // Creates folders, proxies and configuration below `folder`, and starts everything. Errors:
  // something could not be started.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const std::string& folder, Ledger* ledger);

  // The server's address without faults.
  std::string server_address() const { return "unix:" + folder_ + "/server.sock"; }
  std::string client_address() const { return client_proxy_->address(); }
  std::string store() const { return folder_ + "/store/hone.db"; }
  const std::string& folder() const { return folder_; }
  Member& server() { return members_[0]; }
  size_t workers() const { return members_.size() - 1; }
  Member& worker(size_t index) { return members_[1 + index]; }
  TcpProxy& worker_proxy() { return *worker_proxy_; }
  TcpProxy& client_proxy() { return *client_proxy_; }
  MessageTap& tap() { return *tap_; }

  // Restarts programs that have ended, and records unexpected ends.
  void Supervise();
  // Sends SIGKILL, and restarts the program after a pause.
  void Kill(Member& member, absl::Duration pause);
  // Ends all programs in order; records whether each ended in time with 0.
  void Shutdown();
  // Sets a program's wall clock.
  static void ShiftClock(const Member& member, absl::Duration shift);

  // Programs that ended, or failed to end, unexpectedly, with their last words.
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  explicit Cluster(std::string folder) : folder_(std::move(folder)) {}
  void AddMember(const std::string& name, std::vector<std::string> argv);
  void StartMember(Member& member);
  // Appends its output so far to NAME.log in the folder.
  void KeepLog(const Member& member);
  bool MetAFullDisk(const Member& member) const;
  void Surprise(Member& member, const std::string& what);

  const std::string folder_;
  std::vector<Member> members_;  // the server first
  std::unique_ptr<MessageTap> tap_;
  std::unique_ptr<TcpProxy> worker_proxy_;
  std::unique_ptr<TcpProxy> client_proxy_;
  std::vector<std::string> surprises_;
};

// Returns the processes with that name among a process's descendants.
std::vector<pid_t> Descendants(pid_t of, const std::string& name = "");

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CLUSTER_H_

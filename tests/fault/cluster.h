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

// A program that is started again when it ends, as an init system would, and may be hit.
struct Member {
  std::string name;
  std::vector<std::string> argv;
  std::string clock_file;  // moves its clock, and its children's
  std::unique_ptr<integration::Process> process;
  bool expected_end = false;  // we killed it
  absl::Time start_at;        // when it has ended
  int starts = 0;
};

// A server, workers, and the network between them: workers reach the server through a TCP proxy
// and the tap, clients through a TCP proxy of their own. Used by one thread, from which the
// programs are started: they are killed when it ends.
class Cluster {
 public:
  // Makes folders, proxies and configuration below `folder`, and starts everything. Errors: what
  // could not be started.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const std::string& folder, Ledger* ledger);

  // Where a client that meets no fault reaches the server.
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

  // Starts again what has ended and notes what ended by itself.
  void Supervise();
  // SIGKILL, and a new start after a while.
  void Kill(Member& member, absl::Duration pause);
  // Ends everything in order; whether each program ended in time and with 0 is noted.
  void Shutdown();
  // Sets the wall clock of a program.
  static void ShiftClock(const Member& member, absl::Duration shift);

  // Programs that ended, or did not end, against expectation, with their last words.
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  explicit Cluster(std::string folder) : folder_(std::move(folder)) {}
  void AddMember(const std::string& name, std::vector<std::string> argv);
  void StartMember(Member& member);
  // What it said so far goes to the end of NAME.log in the folder.
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

// The processes of that name that a process started, directly or not.
std::vector<pid_t> Descendants(pid_t of, const std::string& name = "");

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CLUSTER_H_

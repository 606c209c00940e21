#ifndef HONE_TESTS_FAULT_CLUSTER_H_
#define HONE_TESTS_FAULT_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/fault/interventions.h"
#include "tests/fault/message_tap.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/integration/process.h"
#include "tests/server/store/postgres_server.h"

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

// The connections of one server.
struct Network {
  std::unique_ptr<MessageTap> tap;     // between the workers' proxy and the server
  std::unique_ptr<TcpProxy> workers;   // from the workers
  std::unique_ptr<TcpProxy> clients;   // from the clients
  std::unique_ptr<TcpProxy> database;  // to PostgreSQL; null on SQLite
};

// Servers, workers, and the network between them: one server with a store on SQLite, or a leader
// and a standby with a PostgreSQL database of their own. Used by one thread, which starts the
// programs; they are killed when it ends.
class Cluster {
 public:
  static constexpr char kDatabase[] = "hone";  // the name of the database

  // Creates folders, proxies and configuration below `folder`, and starts everything. Errors:
  // something could not be started. NotFound: PostgreSQL is not installed.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const std::string& folder, Ledger* ledger,
                                                        StoreKind store = StoreKind::kSqlite);

  // The servers' addresses, separated by commas: without faults, and for clients.
  std::string server_address() const;
  std::string client_address() const;
  // The path or the URI of the store, without faults.
  const std::string& store_place() const { return store_place_; }
  const std::string& folder() const { return folder_; }

  size_t servers() const { return networks_.size(); }
  Member& server(size_t index) { return members_[index]; }
  Network& network(size_t index) { return networks_[index]; }
  // The server that leads, or led last.
  size_t leader();
  Member& server() { return members_[leader()]; }
  Network& network() { return networks_[leader()]; }
  size_t workers() const { return members_.size() - servers(); }
  Member& worker(size_t index) { return members_[servers() + index]; }
  store::PostgresServer* database() { return database_.get(); }  // null: the store is on SQLite

  // Restarts programs that have ended, and records unexpected ends.
  void Supervise();
  // Sends SIGKILL, and restarts the program after a pause.
  void Kill(Member& member, absl::Duration pause);
  void KillDatabase(absl::Duration pause);
  // Ends the faults of all connections.
  void CalmNetworks();
  // Ends all programs but the database in order; records whether each ended in time with 0.
  void Shutdown();
  void EndDatabase();
  // Sets a program's wall clock.
  static void ShiftClock(const Member& member, absl::Duration shift);

  // Programs that ended, or failed to end, unexpectedly, with their last words.
  const std::vector<std::string>& surprises() const { return surprises_; }
  // The servers and databases that ended with an error and were started again, as by their units.
  const std::vector<Intervention>& restarts() const { return restarts_; }

 private:
  explicit Cluster(std::string folder) : folder_(std::move(folder)) {}
  absl::Status StartDatabase();
  absl::Status AddServer(const std::string& name, Ledger* ledger);
  std::string SocketOf(const Member& server) const;
  void AddMember(const std::string& name, std::vector<std::string> argv);
  void StartMember(Member& member);
  void SuperviseDatabase();
  // Appends its output so far to NAME.log in the folder.
  void KeepLog(const Member& member);
  // Whether it is a server that ended with an error, which its unit restarts after a pause.
  bool WasEndedByAnError(Member& member);
  void Surprise(Member& member, const std::string& what);

  const std::string folder_;
  std::string store_place_;
  std::unique_ptr<store::PostgresServer> database_;
  absl::Time database_start_at_ = absl::InfinitePast();
  bool database_was_killed_ = false;
  std::vector<Member> members_;  // the servers first
  std::vector<Network> networks_;
  size_t leader_ = 0;  // the last one
  std::vector<std::string> surprises_;
  std::vector<Intervention> restarts_;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CLUSTER_H_

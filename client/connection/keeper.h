#ifndef HONE_CLIENT_CONNECTION_KEEPER_H_
#define HONE_CLIENT_CONNECTION_KEEPER_H_

#include <string>

#include "client/connection/private_paths.h"

namespace hone::client {

// The keeper is a process that supervises the private server and workers of a user, one for each
// device that a client wants to measure on. It starts them in its own session and process group,
// restarts a worker that dies, and stops everything when the last client has gone; then it exits.
// Each client holds a connection to the keeper's socket. The kernel closes this connection when the
// client exits or is killed.
//
// Messages are SOCK_SEQPACKET packets of text. A client sends kAttach, or kAttachWorker and the
// name of a device, once. The keeper answers once with kReady, or with kFailed and the reason. If a
// worker keeps failing, the clients that asked for it get kWorkerFailed and the reason. If the
// server dies later, every client gets kFailed. If the connection is closed without an answer, the
// keeper was exiting, and the client should try again.
inline constexpr char kAttach[] = "attach";
inline constexpr char kAttachWorker[] = "attach worker ";
inline constexpr char kReady[] = "ready";
inline constexpr char kFailed[] = "failed ";
inline constexpr char kWorkerFailed[] = "worker-failed ";
inline constexpr int kMaxKeeperPacket = 4096;

struct KeeperOptions {
  PrivatePaths paths;
  std::string program_dir;  // holds hone-server and hone-worker
  int lock_fd = -1;         // paths.lock, locked; the lock is held until the keeper exits
  int listen_fd = -1;       // paths.keeper_socket, listening
};

// Runs the keeper. Called in a newly forked process that has a single thread. Never returns.
[[noreturn]] void RunKeeper(const KeeperOptions& options);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_KEEPER_H_

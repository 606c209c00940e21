#ifndef HONE_CLIENT_LIB_KEEPER_H_
#define HONE_CLIENT_LIB_KEEPER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/lib/private_paths.h"

namespace hone::client {

// The keeper is the process between clients and their private server and worker. It starts both, in
// a session and process group of its own, restarts the worker when it dies, and ends them – and
// itself – once its last client has gone. A client is a connection on the keeper's socket: the
// kernel closes it when the client ends, however it ends.
//
// Messages are SOCK_SEQPACKET packets of text. A client says kAttach or kAttachWorker once; the
// keeper answers once with kReady, or with kFailed and the reason. A client that wants the worker
// may later get kWorkerFailed and the reason, when the worker does not stay up, and every client
// gets kFailed when the server dies later. A connection that is closed without an answer met a
// keeper that was ending: try again.
inline constexpr char kAttach[] = "attach";
inline constexpr char kAttachWorker[] = "attach worker";
inline constexpr char kReady[] = "ready";
inline constexpr char kFailed[] = "failed ";
inline constexpr char kWorkerFailed[] = "worker-failed ";
inline constexpr int kMaxKeeperPacket = 4096;

struct KeeperOptions {
  PrivatePaths paths;
  std::string program_dir;  // holds hone-server and hone-worker
  int lock_fd = -1;         // paths.lock, locked; the lock is held until the keeper has ended
  int listen_fd = -1;       // paths.keeper_socket, listening
};

// Becomes the keeper; called in a process just forked, before it has threads. Never returns.
[[noreturn]] void RunKeeper(const KeeperOptions& options);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KEEPER_H_

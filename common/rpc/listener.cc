#include "common/rpc/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"

namespace hone::rpc {
namespace {

// Checks the path of a Unix socket. gRPC unlinks an existing socket before it binds, even one on
// which another server listens.
absl::Status CheckSocketFree(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot make a socket in the folder ", folder));
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus()
                           : ErrnoStatus(errno, absl::StrCat("looking at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists and is not a socket"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "making a Unix socket");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, path.c_str(), path.size() + 1);  // Address::Parse checked the length
  const bool answered = connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
  close(fd);
  if (answered) {
    return absl::AlreadyExistsError(absl::StrCat("another server already listens on unix:", path));
  }
  return absl::OkStatus();
}

absl::Status WhyNotBound(const Address& address, int error) {
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat("another program listens on ", address.ToText(),
                                                   "; stop it, or choose another port"));
    case EADDRNOTAVAIL:
      return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToText(),
                                                        ": it is not an address of this machine"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("cannot listen on ", address.ToText(),
                       ": ports below 1024 need a privilege; choose another port"));
    default:
      return ErrnoStatus(error, absl::StrCat("cannot listen on ", address.ToText()));
  }
}

}  // namespace

absl::Status CheckPortFree(const Address& address) {
  HONE_ASSIGN_OR_RETURN(const AddressList list, Resolve(address));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const int fd = socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int yes = 1;  // like gRPC, because connections of an earlier server may be closing
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    const int result = bind(fd, entry->ai_addr, entry->ai_addrlen) == 0 ? 0 : errno;
    close(fd);
    if (result == 0) return absl::OkStatus();  // gRPC listens on every address that it can bind
    error = result;
  }
  return WhyNotBound(address, error);
}

absl::Status CheckFree(const Address& address) {
  return address.IsUnix() ? CheckSocketFree(address.path) : CheckPortFree(address);
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  static const auto& quota = (new grpc::ResourceQuota("hone"))->Resize(kMaxBufferedBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeaderBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kHandshakeLimit)));
  // gRPC decompresses a message before it looks at the size and before the caller is known, so that
  // a message of 16 MiB could become one of 16 GiB.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTime)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveServerMinimum)));
  // Two servers on one port would each get half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

absl::Status AddListener(grpc::ServerBuilder& builder, const Address& address,
                         ServerCertificates& certificates, int* port) {
  const ServerSecurity security = certificates.Get();
  HONE_RETURN_IF_ERROR(CheckAllowed(address, security.tls(), security.insecure));
  HONE_RETURN_IF_ERROR(CheckFree(address));
  if (address.IsUnix()) {
    builder.AddListeningPort(address.ToText(), grpc::InsecureServerCredentials());
    return absl::OkStatus();
  }
  builder.AddListeningPort(
      address.ToText(),
      security.tls() ? certificates.MakeCredentials() : grpc::InsecureServerCredentials(), port);
  return absl::OkStatus();
}

}  // namespace hone::rpc

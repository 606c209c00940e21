#ifndef HONE_CLIENT_LIB_CLIENT_CONFIG_H_
#define HONE_CLIENT_LIB_CLIENT_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/security.h"

namespace hone::client {

// Which server a client talks to, and how. An empty field was not said.
struct ClientConfig {
  std::string server;  // "": a private one on this machine
  rpc::SecuritySources security;
};

// Reads a configuration file (common/base/config_file.h) with the keys server, ca, certificate,
// key, token, token-file, server-name and insecure; ca, certificate and key are paths or PEM texts.
// InvalidArgument, with path and line: malformed, or another key. PermissionDenied: it has a
// secret, and everybody may read it. NotFound: no such file.
absl::StatusOr<ClientConfig> LoadClientConfig(const std::string& path);

// The file that is read when none is named: $XDG_CONFIG_HOME/hone/client.conf, by default
// ~/.config/hone/client.conf; "" when neither is set.
std::string DefaultClientConfig();

// Completes what the command line said: by $HONE_SERVER, $HONE_CA and $HONE_TOKEN_FILE, and then by
// the file `path`, or $HONE_CONFIG, or the default one if there is one. What comes first wins; of
// ways to be known (token, certificate) those of one source are taken together. A server that was
// named otherwise than in the file gets nothing of the file: its secrets are for its own server.
absl::StatusOr<ClientConfig> CompleteConfig(ClientConfig said, const std::string& path);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_CLIENT_CONFIG_H_

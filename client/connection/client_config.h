#ifndef HONE_CLIENT_CONNECTION_CLIENT_CONFIG_H_
#define HONE_CLIENT_CONNECTION_CLIENT_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/security.h"

namespace hone::client {

// Which server a client talks to, and how. An empty field is not set.
struct ClientConfig {
  std::string server;  // "": a private server on this machine
  rpc::SecuritySources security;
  std::string source;   // of CompleteConfig: what names the server; "": `said`
  std::string ignored;  // of CompleteConfig: the file that was ignored, and why; "": none
};

// Reads a configuration file (common/base/config_file.h) with the keys server, ca, certificate,
// key, token, token-file, server-name and insecure; ca, certificate and key are paths or PEM texts.
// InvalidArgument, with path and line: the file is malformed or has an unknown key.
// PermissionDenied: the file contains a secret, and other users can read it. NotFound: no such
// file.
absl::StatusOr<ClientConfig> LoadClientConfig(const std::string& path);

// Completes the values given on the command line (`said`) from $HONE_SERVER, $HONE_CA and
// $HONE_TOKEN_FILE, and then from a file: `path`, else $HONE_CONFIG, else, if it exists,
// $XDG_CONFIG_HOME/hone/client.conf or ~/.config/hone/client.conf. Earlier sources win. A token and
// its file come from the same source, and so do a certificate and its key. If the server is already
// named and is not the server of the file, the whole file is ignored, because its secrets are for
// its own server. The field `ignored` of the result names such a file.
absl::StatusOr<ClientConfig> CompleteConfig(ClientConfig said, const std::string& path);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_CLIENT_CONFIG_H_

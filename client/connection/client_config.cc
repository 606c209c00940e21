#include "client/connection/client_config.h"

#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<ClientConfig> LoadClientConfig(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto entries = ParseConfig(text);
  if (!entries.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", entries.status().message()));
  }
  ClientConfig config;
  rpc::SecuritySources& security = config.security;
  const std::map<std::string, std::string*> keys = {{"server", &config.server},
                                                    {"ca", &security.ca},
                                                    {"certificate", &security.certificate},
                                                    {"key", &security.key},
                                                    {"token", &security.token},
                                                    {"token-file", &security.token_file},
                                                    {"server-name", &security.server_name}};
  for (const ConfigEntry& entry : *entries) {
    const std::string where = absl::StrCat(path, ": line ", entry.line, ": ");
    if (entry.values.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(where, entry.key, ": not a list"));
    }
    const std::string& value = entry.values[0];
    if (entry.key == "insecure" && (value == "true" || value == "false")) {
      security.insecure = value == "true";
      continue;
    }
    const auto known = keys.find(entry.key);
    if (entry.key == "name" || entry.key == "listen") {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is the configuration of a ", entry.key == "name" ? "hone-worker" : "hone-server",
          "; clients need another file, such as client.conf from hone-server init"));
    }
    if (known == keys.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, "there is no key '", entry.key, "'; the keys are ",
          absl::StrJoin(keys, ", ", [](std::string* out, const auto& key) { *out += key.first; }),
          " and insecure"));
    }
    *known->second = value;
  }
  const bool secret = !security.token.empty() || absl::StrContains(security.key, "-----BEGIN");
  if (secret && OthersHaveAccess(path)) {
    return absl::PermissionDeniedError(absl::StrCat(
        path,
        " contains a secret, and other users of this machine can read it; as its owner, run: "
        "chmod 600 ",
        path));
  }
  return config;
}

absl::StatusOr<ClientConfig> CompleteConfig(ClientConfig said, const std::string& path) {
  rpc::SecuritySources& security = said.security;
  if (said.server.empty()) {
    said.server = Variable("HONE_SERVER");
    if (!said.server.empty()) said.source = "HONE_SERVER";
  }
  if (security.ca.empty()) security.ca = Variable("HONE_CA");
  if (security.token_file.empty()) security.token_file = Variable("HONE_TOKEN_FILE");
  std::string file = path.empty() ? Variable("HONE_CONFIG") : path;
  const bool named = !file.empty();
  const std::string folder = UserFolder("XDG_CONFIG_HOME", ".config");
  if (!named && !folder.empty()) file = absl::StrCat(folder, "/client.conf");
  struct stat info;
  if (file.empty() || (!named && stat(file.c_str(), &info) != 0)) return said;
  HONE_ASSIGN_OR_RETURN(ClientConfig config, LoadClientConfig(file));
  if (!said.server.empty() && said.server != config.server) {
    said.ignored = absl::StrCat(
        file, " was ignored, because it names ",
        config.server.empty() ? "no server" : absl::StrCat("the server ", config.server), ", not ",
        said.server);
    return said;
  }
  if (said.server.empty() && path.empty()) said.source = file;
  said.server = config.server;
  if (security.ca.empty()) security.ca = config.security.ca;
  if (security.server_name.empty()) security.server_name = config.security.server_name;
  if (security.token_file.empty()) {
    security.token = config.security.token;
    security.token_file = config.security.token_file;
  }
  if (security.certificate.empty() && security.key.empty()) {
    security.certificate = config.security.certificate;
    security.key = config.security.key;
  }
  security.insecure = security.insecure || config.security.insecure;
  return said;
}

}  // namespace hone::client

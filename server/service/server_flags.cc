#include "server/service/server_flags.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/secret.h"
#include "common/rpc/token_table.h"

namespace hone::service {
namespace {

absl::Status ParseAddresses(absl::string_view option, const std::vector<std::string>& texts,
                            std::vector<rpc::Address>* addresses) {
  for (const std::string& text : texts) {
    absl::StatusOr<rpc::Address> address = rpc::Address::Parse(text);
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", address.status().message()));
    }
    addresses->push_back(*std::move(address));
  }
  return absl::OkStatus();
}

// Returns null if no file is given.
absl::StatusOr<std::shared_ptr<const rpc::TokenTable>> LoadTokens(const std::string& path) {
  if (path.empty()) return nullptr;
  const absl::StatusOr<std::string> text = rpc::ReadSecretFile(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat("tokens: ", text.status().message()));
  }
  absl::StatusOr<rpc::TokenTable> table = rpc::TokenTable::Parse(*text);
  if (!table.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens: ", path, ": ", table.status().message()));
  }
  return std::make_shared<const rpc::TokenTable>(*std::move(table));
}

// Checks the address of something that is served beside the gRPC services and without encryption.
// `what`: "metrics are". An empty address is none.
absl::Status CheckOwnAddress(absl::string_view option, const std::string& text,
                             absl::string_view what, const Flags& flags,
                             const ServerOptions& options) {
  if (text.empty()) return absl::OkStatus();
  std::vector<rpc::Address> own;
  HONE_RETURN_IF_ERROR(ParseAddresses(option, {text}, &own));
  if (!rpc::CheckAllowed(own[0], /*tls=*/false, flags.security.insecure).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": ", text, " is not limited to this machine, and ", what,
        " never encrypted: name localhost, or give --insecure if the network is trusted"));
  }
  for (const std::vector<rpc::Address>* addresses :
       {&options.listen, &options.listen_clients, &options.listen_workers, &options.listen_admin}) {
    if (own[0].port == 0 || !absl::c_linear_search(*addresses, own[0])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", text, " is also an address of the service; give ",
                     option == "web-listen" ? "the page" : "metrics", " another port"));
  }
  return absl::OkStatus();
}

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    files_.emplace_back(std::move(path), Stamp());
    Look(files_.back().first, files_.back().second);
  }
}

bool FileWatch::Look(const std::string& path, Stamp& stamp) {
  struct stat now;
  if (stat(path.c_str(), &now) != 0) return false;
  const bool same = now.st_dev == stamp.device && now.st_ino == stamp.file &&
                    now.st_size == stamp.bytes && now.st_ctim.tv_sec == stamp.changed.tv_sec &&
                    now.st_ctim.tv_nsec == stamp.changed.tv_nsec;
  stamp = {now.st_dev, now.st_ino, now.st_size, now.st_ctim};
  return !same;
}

bool FileWatch::Changed() {
  bool changed = false;
  for (auto& [path, stamp] : files_) changed = Look(path, stamp) || changed;
  return changed;
}

absl::StatusOr<ServerOptions> ToOptions(const Flags& flags) {
  ServerOptions options{.private_mode = flags.private_mode};
  HONE_RETURN_IF_ERROR(ParseAddresses("listen", flags.listen, &options.listen));
  HONE_RETURN_IF_ERROR(
      ParseAddresses("listen-clients", flags.listen_clients, &options.listen_clients));
  HONE_RETURN_IF_ERROR(
      ParseAddresses("listen-workers", flags.listen_workers, &options.listen_workers));
  HONE_RETURN_IF_ERROR(ParseAddresses("listen-admin", flags.listen_admin, &options.listen_admin));
  if (flags.listen.empty() && flags.listen_clients.empty() && flags.listen_workers.empty() &&
      flags.listen_admin.empty()) {
    return absl::InvalidArgumentError("listen: an address is missing, such as localhost:7070");
  }
  if (flags.store.empty()) return absl::InvalidArgumentError("store: the database file is missing");
  if (std::error_code unknown; std::filesystem::is_directory(flags.store, unknown)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "store: ", flags.store, " is a folder; name a file in it, as ", flags.store, "/hone.db"));
  }
  HONE_ASSIGN_OR_RETURN(options.security, rpc::LoadServerSecurity(flags.security, absl::Now()));
  HONE_ASSIGN_OR_RETURN(options.tokens, LoadTokens(flags.tokens));
  options.calls_per_second = flags.rate_limit;
  options.uploads.max_bytes = flags.upload_limit_mib << 20;
  options.audit_log = flags.audit_log;
  options.shutdown_limit = absl::Seconds(flags.shutdown_limit);
  options.threads = flags.threads > 0
                        ? flags.threads
                        : static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
  HONE_RETURN_IF_ERROR(CheckListeners(options));
  HONE_RETURN_IF_ERROR(
      CheckOwnAddress("metrics-listen", flags.metrics_listen, "metrics are", flags, options));
  HONE_RETURN_IF_ERROR(
      CheckOwnAddress("web-listen", flags.web_listen, "the page is", flags, options));
  if (!flags.web_listen.empty() && flags.web_listen == flags.metrics_listen) {
    return absl::InvalidArgumentError("web-listen: it is also the address of the metrics");
  }
  return options;
}

std::vector<std::string> CertificateFiles(const Flags& flags) {
  std::vector<std::string> files;
  for (const std::string* source :
       {&flags.security.certificate, &flags.security.key, &flags.security.client_ca}) {
    // A configuration file may contain a PEM text instead of its path.
    if (!source->empty() && !absl::StrContains(*source, "-----BEGIN ")) files.push_back(*source);
  }
  return files;
}

Reloaded Reload(const Flags& flags, Server& server) {
  absl::StatusOr<std::shared_ptr<const rpc::TokenTable>> tokens = LoadTokens(flags.tokens);
  const absl::StatusOr<rpc::ServerSecurity> security =
      rpc::LoadServerSecurity(flags.security, absl::Now());
  return {
      .tokens = tokens.ok() ? server.ReplaceTokens(*std::move(tokens)) : tokens.status(),
      .certificates = security.ok() ? server.ReplaceCertificates(*security) : security.status()};
}

}  // namespace hone::service

#include "server/service/server_flags.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/channel.h"
#include "common/rpc/revocation.h"
#include "common/rpc/secret.h"
#include "common/rpc/token_table.h"
#include "google/protobuf/wrappers.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"

namespace hone::service {
namespace {

// The events and states of the last days are always kept.
constexpr int kLeastDays = 7;

absl::StatusOr<rpc::Address> ParseAddress(absl::string_view option, const std::string& text) {
  absl::StatusOr<rpc::Address> address = rpc::Address::Parse(text);
  if (address.ok()) return address;
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", address.status().message()));
}

// Reads and parses the file of an option. Returns null if none is given. `advice`: how to make the
// file.
template <typename Parsed>
absl::StatusOr<std::shared_ptr<const Parsed>> Load(
    absl::string_view option, const std::string& path,
    absl::StatusOr<std::string> (*read)(const std::string&), absl::string_view advice) {
  if (path.empty()) return nullptr;
  const absl::StatusOr<std::string> text = read(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat(option, ": ", text.status().message(), advice));
  }
  absl::StatusOr<Parsed> parsed = Parsed::Parse(*text);
  if (parsed.ok()) return std::make_shared<const Parsed>(*std::move(parsed));
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", path, ": ", parsed.status().message()));
}

absl::StatusOr<std::shared_ptr<const rpc::TokenTable>> LoadTokens(const std::string& path) {
  return Load<rpc::TokenTable>("tokens", path, rpc::ReadSecretFile, "");
}

absl::StatusOr<std::shared_ptr<const rpc::RevocationList>> LoadRevoked(const std::string& path) {
  return Load<rpc::RevocationList>("revoked", path, ReadFile,
                                   "; create it, empty if no certificate is revoked");
}

// Checks the address of something that is served beside the gRPC services and without encryption.
// `what`: "metrics are". An empty address is none.
absl::Status CheckOwnAddress(absl::string_view option, const std::string& text,
                             absl::string_view what, const Flags& flags,
                             const ServerOptions& options) {
  if (text.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const rpc::Address own, ParseAddress(option, text));
  if (!rpc::CheckAllowed(own, /*tls=*/false, flags.security.insecure).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": ", text, " is not limited to this machine, and ", what,
        " never encrypted: name localhost, or give --insecure if the network is trusted"));
  }
  for (const auto& [address, role] : options.listen) {
    if (own.port == 0 || address != own) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", text, " is also an address of the service; give ",
                     option == "web-listen" ? "the page" : "metrics", " another port"));
  }
  return absl::OkStatus();
}

// InvalidArgument: an age is so short that users would miss something.
absl::StatusOr<store::RetentionPolicy> ToPolicy(const Flags& flags) {
  const int spared_days = DaysOf(store::RetentionPolicy::kSpared);
  const auto age = [](absl::string_view option, int days,
                      int least) -> absl::StatusOr<absl::Duration> {
    if (days == 0 || days >= least) return days * absl::Hours(24);
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", days,
                                                   " days are too few: give at least ", least,
                                                   ", or 0 to keep them for ever"));
  };
  store::RetentionPolicy policy{.most_bytes = flags.store_limit_gib << 30};
  HONE_ASSIGN_OR_RETURN(policy.records, age("keep-records", flags.keep_records, spared_days));
  HONE_ASSIGN_OR_RETURN(policy.bests, age("keep-bests", flags.keep_bests, spared_days));
  HONE_ASSIGN_OR_RETURN(policy.events, age("keep-events", flags.keep_events, kLeastDays));
  HONE_ASSIGN_OR_RETURN(policy.jobs, age("keep-jobs", flags.keep_jobs, kLeastDays));
  return policy;
}

// Returns the address by which this machine reaches the server: a Unix socket, or else the first
// address.
absl::StatusOr<rpc::Address> OwnAddress(const ServerOptions& options) {
  for (const auto& [address, role] : options.listen) {
    if (address.IsUnix()) return address;
  }
  rpc::Address address = options.listen.front().address;
  if (address.port == 0) {
    return absl::FailedPreconditionError(
        "the system chooses the server's port, so --check-health cannot know it; give a port, or "
        "also listen on a Unix socket");
  }
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
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
  const std::tuple<const char*, const std::vector<std::string>&, std::optional<rpc::Role>> all[] = {
      {"listen", flags.listen, std::nullopt},
      {"listen-clients", flags.listen_clients, rpc::Role::kClient},
      {"listen-workers", flags.listen_workers, rpc::Role::kWorker},
      {"listen-admin", flags.listen_admin, rpc::Role::kAdmin}};
  for (const auto& [option, texts, role] : all) {
    for (const std::string& text : texts) {
      HONE_ASSIGN_OR_RETURN(const rpc::Address address, ParseAddress(option, text));
      options.listen.push_back({address, role});
    }
  }
  if (options.listen.empty()) {
    return absl::InvalidArgumentError("listen: an address is missing, such as localhost:7070");
  }
  if (flags.store.empty()) return absl::InvalidArgumentError("store: the database file is missing");
  if (std::error_code unknown; std::filesystem::is_directory(flags.store, unknown)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "store: ", flags.store, " is a folder; name a file in it, as ", flags.store, "/hone.db"));
  }
  HONE_ASSIGN_OR_RETURN(options.security, rpc::LoadServerSecurity(flags.security, absl::Now()));
  HONE_ASSIGN_OR_RETURN(options.tokens, LoadTokens(flags.tokens));
  HONE_ASSIGN_OR_RETURN(options.revoked, LoadRevoked(flags.revoked));
  options.calls_per_second = flags.rate_limit;
  options.uploads.max_bytes = flags.upload_limit_mib << 20;
  HONE_ASSIGN_OR_RETURN(options.retention.policy, ToPolicy(flags));
  options.connections.all = flags.connection_limit;
  options.connections.of_host = flags.host_connection_limit;
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

absl::Status CheckHealth(const Flags& flags, const ServerOptions& options) {
  constexpr absl::Duration kPatience = absl::Seconds(5);
  constexpr int kServing = 1;
  HONE_ASSIGN_OR_RETURN(const rpc::Address address, OwnAddress(options));
  rpc::SecuritySources trust{.insecure = true};
  if (options.security.tls() && !address.IsUnix()) {
    if (options.security.require_certificates) {
      return absl::FailedPreconditionError(
          "the server requires certificates of its callers, and --check-health has none; let the "
          "server also listen on a Unix socket, such as unix:/run/hone/hone.sock");
    }
    const std::string& own = options.security.identity.certificate;
    trust.ca = flags.security.client_ca.empty() ? own : flags.security.client_ca;
    HONE_ASSIGN_OR_RETURN(const rpc::CertificateFacts facts, rpc::DescribeCertificate(own));
    if (!facts.hosts.empty()) trust.server_name = facts.hosts[0];
  }
  HONE_ASSIGN_OR_RETURN(const rpc::ChannelSecurity security, rpc::LoadSecurity(trust));
  HONE_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(address.ToText(), security));

  // These have the forms of HealthCheckRequest (the service) and HealthCheckResponse (the status).
  google::protobuf::StringValue request;
  google::protobuf::Int32Value response;
  request.set_value("hone.v1.TuningService");  // a server with a damaged store offers it, too
  grpc::ClientContext context;
  rpc::SetDeadline(context, kPatience);
  grpc::TemplatedGenericStub<google::protobuf::StringValue, google::protobuf::Int32Value> stub(
      channel);
  grpc::Status status;
  absl::Notification answered;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status answer) {
                   status = std::move(answer);
                   answered.Notify();
                 });
  answered.WaitForNotification();
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat(address.ToText(), " does not answer: ", status.error_message()));
  }
  if (response.value() == kServing) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the server at ", address.ToText(),
                   " is starting or ending, is a standby, or cannot reach its database"));
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

std::array<absl::Status, 3> Reload(const Flags& flags, Server& server, ServerOptions& options) {
  const absl::StatusOr<std::shared_ptr<const rpc::TokenTable>> tokens = LoadTokens(flags.tokens);
  absl::Status of_tokens = tokens.status();
  if (tokens.ok()) of_tokens = server.ReplaceTokens(*tokens);
  if (of_tokens.ok()) options.tokens = *tokens;
  const absl::StatusOr<std::shared_ptr<const rpc::RevocationList>> revoked =
      LoadRevoked(flags.revoked);
  if (revoked.ok()) server.ReplaceRevoked(options.revoked = *revoked);
  const absl::StatusOr<rpc::ServerSecurity> security =
      rpc::LoadServerSecurity(flags.security, absl::Now());
  absl::Status of_certificates = security.status();
  if (security.ok()) of_certificates = server.ReplaceCertificates(*security);
  if (of_certificates.ok()) options.security = *security;
  return {std::move(of_tokens), revoked.status(), std::move(of_certificates)};
}

}  // namespace hone::service

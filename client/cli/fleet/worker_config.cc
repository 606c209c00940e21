#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/connection/client_config.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/certificate.h"
#include "common/rpc/revocation.h"
#include "common/rpc/secret.h"

namespace hone::cli {
namespace {

// The clock of a board may be slightly behind.
constexpr absl::Duration kClockSkew = absl::Hours(1);

struct WorkerConfigOptions {
  std::string name;
  std::string authority = DefaultServerFolder();
  std::string output;  // "": standard output
  bool overwrite = false;
  int days = 825;
};

// AlreadyExists: the output is a file, which may hold the key of a worker in use.
absl::Status CheckNotThere(const WorkerConfigOptions& options) {
  std::error_code unknown;
  if (options.overwrite || !std::filesystem::exists(options.output, unknown)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      options.output, " exists; give the file another name, or replace it with --overwrite"));
}

// Signs the certificate here and not on the server, which does not need the authority's key. The
// owner of this key decides which workers are admitted.
absl::Status MakeWorkerConfig(const Globals& globals, const WorkerConfigOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotThere(options));
  rpc::KeyPair authority;
  absl::StatusOr<std::string> certificate = ReadFile(absl::StrCat(options.authority, "/ca.pem"));
  if (!certificate.ok()) {
    return absl::Status(
        certificate.status().code(),
        absl::StrCat(certificate.status().message(),
                     "; give the folder that hone-server init made: --authority DIR"));
  }
  authority.certificate = *std::move(certificate);
  HONE_ASSIGN_OR_RETURN(authority.key,
                        rpc::ReadSecretFile(absl::StrCat(options.authority, "/ca-key.pem")));
  std::string server = globals.server;
  if (server.empty()) {
    HONE_ASSIGN_OR_RETURN(const client::ClientConfig made, client::LoadClientConfig(absl::StrCat(
                                                               options.authority, "/client.conf")));
    server = made.server;
  }
  const absl::Time now = absl::Now();
  const absl::Time expires = now + absl::Hours(24) * options.days;
  const rpc::Identity identity{.name = options.name, .role = rpc::Role::kWorker};
  HONE_ASSIGN_OR_RETURN(const rpc::KeyPair pair,
                        rpc::IssueCertificate(authority, {.common_name = options.name,
                                                          .uri = rpc::IdentityUri(identity),
                                                          .not_before = now - kClockSkew,
                                                          .not_after = expires}));
  HONE_ASSIGN_OR_RETURN(const rpc::CertificateFacts facts,
                        rpc::DescribeCertificate(pair.certificate));
  // Without this entry, the certificate of a lost machine could not be revoked.
  HONE_RETURN_IF_ERROR(rpc::AppendToFile(absl::StrCat(options.authority, "/issued"),
                                         rpc::IssuedLine({facts.serial, identity}, expires)));
  const std::string text = absl::StrCat(
      "# For the worker ", options.name, ", valid until ", rpc::FormatDay(expires),
      ": hone-worker --config FILE. Contains a secret.\nserver = ", QuoteConfigValue(server),
      "\nname = ", QuoteConfigValue(options.name),
      "\nca = ", QuoteConfigValue(authority.certificate),
      "\ncertificate = ", QuoteConfigValue(pair.certificate),
      "\nkey = ", QuoteConfigValue(pair.key), "\n");
  if (!options.output.empty()) {
    const absl::Status written =
        WriteFileAtomically(options.output, text, Durability::kMachine, /*mode=*/0600);
    if (!written.ok()) return WithExitCode(written, kExitFailed);
    if (globals.json) return PrintJson({{"name", options.name}, {"path", options.output}});
    absl::PrintF("wrote %s; only you can read it, because it contains a secret\n", options.output);
    return absl::OkStatus();
  }
  if (globals.json) {
    return PrintJson({{"server", server},
                      {"name", options.name},
                      {"ca", authority.certificate},
                      {"certificate", pair.certificate},
                      {"key", pair.key}});
  }
  PrintText(text);
  return absl::OkStatus();
}

}  // namespace

void AddWorkerConfig(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "worker-config", "Make a configuration file with which a worker can reach the server");
  auto options = std::make_shared<WorkerConfigOptions>();
  command.Add("--name", options->name, "Name of the worker; no other worker can use it",
              {Required(), PlainName()});
  command.Add("--authority", options->authority,
              "Folder made by hone-server init, with the authority's key", {ShowDefault()});
  command.Add("--days", options->days, "Validity of the certificate in days",
              {ShowDefault(), Range(1, 3650)});
  command.Add("-o,--output", options->output,
              "FILE to write, which only you can read (default: standard output)", {NotEmpty()});
  command.AddFlag("--overwrite", options->overwrite, "Replace FILE if it exists");
  CompleteWithoutTarget(
      command, globals,
      "Examples:\n"
      "  hone worker-config --name pi-07 -o pi-07.conf\n"
      "  hone worker-config --name pi-07 --authority /etc/hone --server hone.internal:7071 -o "
      "pi.conf",
      [&globals, options] { return MakeWorkerConfig(globals, *options); });
}

}  // namespace hone::cli

#include "server/service/offline_commands.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/base/config_file.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/revocation.h"
#include "common/rpc/role.h"
#include "common/rpc/secret.h"
#include "common/rpc/token_table.h"
#include "server/store/exchange/exchange.h"
#include "server/store/sqlite/backup.h"
#include "server/store/store.h"

namespace hone::service {
namespace {

constexpr char kRestore[] =
    "Replace a store with a backup, and keep the old store under another name";
constexpr char kMerge[] = "Add to a store the records and bests of another store";

constexpr char kRevoke[] =
    "Withdraw the token and the certificates of a caller, or one certificate";

struct OfflineFlags {
  std::string store;
  std::string from;
};

// Reads a file of the folder that Initialize has made.
absl::StatusOr<std::string> ReadOwn(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!absl::IsNotFound(text.status())) return text;
  return absl::NotFoundError(
      absl::StrCat(text.status().message(), "; give the folder that hone-server init has made"));
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// Returns the table of tokens without the lines of this caller.
std::string TokensWithout(absl::string_view text, absl::string_view name) {
  std::vector<absl::string_view> kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipWhitespace());
    const bool is_entry = words.size() > 1 && !absl::StartsWith(words[0], "#");
    if (!is_entry || words[1] != name) kept.push_back(line);
  }
  return absl::StrJoin(kept, "\n");
}

// Replaces the content of a file, which keeps its owner and group: the server is another user.
absl::Status Rewrite(const std::string& path, absl::string_view content) {
  struct stat before;
  if (stat(path.c_str(), &before) != 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  HONE_RETURN_IF_ERROR(
      WriteFileAtomically(path, content, Durability::kMachine, before.st_mode & 0777));
  if (chown(path.c_str(), before.st_uid, before.st_gid) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("give ", path, " back to its owner"));
}

// Checks that the store exists, because opening a missing one would create it.
absl::Status CheckIsThere(const std::string& from) {
  struct stat info;
  if (absl::StartsWith(from, "postgres") || stat(from.c_str(), &info) == 0) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("--from ", from, ": there is no such file"));
}

absl::Status Restore(const OfflineFlags& flags) {
  HONE_ASSIGN_OR_RETURN(
      const store::RestoreReport report,
      store::RestoreStore(flags.store, flags.from, absl::ToUnixMillis(absl::Now())));
  std::printf("%s holds %s of %s", flags.store.c_str(), Counted(report.records, "record").c_str(),
              flags.from.c_str());
  if (!report.kept_as.empty()) std::printf("; the old store is kept as %s", report.kept_as.c_str());
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Merge(const OfflineFlags& flags) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> from, store::OpenStore(flags.from));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> into, store::OpenStore(flags.store));
  HONE_ASSIGN_OR_RETURN(const bool leads, into->Lead());
  if (!leads) {
    return absl::UnavailableError(absl::StrCat(
        "a server leads ", store::StoreName(flags.store),
        ": import the records through it (hone records import), or stop all of its servers"));
  }
  HONE_ASSIGN_OR_RETURN(const store::ImportReport report, store::MergeStores(*into, *from));
  std::printf("%s added, %lld already there; %s newly published\n",
              Counted(report.added, "record").c_str(), static_cast<long long>(report.known),
              Counted(report.bests, "best").c_str());
  return absl::OkStatus();
}

absl::Status RevokeAndPrint(const std::string& folder, const std::string& who) {
  HONE_ASSIGN_OR_RETURN(const RevokeReport report, Revoke(folder, who, absl::Now()));
  for (const std::string& name : report.tokens) {
    std::printf("the token of %s is withdrawn\n", name.c_str());
  }
  for (const std::string& serial : report.serials) {
    std::printf("the certificate %s is revoked\n", serial.c_str());
  }
  if (report.tokens.empty() && report.serials.empty()) {
    std::printf("nothing was changed: %s is already revoked\n", who.c_str());
  }
  return absl::OkStatus();
}

using Files = std::map<std::string, std::string>;  // name → content

// Certificates become valid this long before they are made, because other clocks may be behind.
constexpr absl::Duration kClockSkew = absl::Hours(1);

struct Maker {
  const InitOptions& options;
  const std::string folder;
  const std::vector<std::string> listen;
  const absl::Time now;
  rpc::KeyPair authority;
  Files files;

  std::string PathOf(const std::string& name) const { return absl::StrCat(folder, "/", name); }

  // Returns the folder of the store, in which the server also writes its other files.
  std::string StoreFolder() const {
    const std::string& store = options.store;
    if (absl::StrContains(store, "://")) return folder;  // a database
    return store.substr(0, store.rfind('/'));
  }

  absl::Status AddAuthority() {
    HONE_ASSIGN_OR_RETURN(authority,
                          rpc::MakeAuthority(absl::StrCat("hone.authority.", options.hosts[0]),
                                             now - kClockSkew, now + options.authority_lifetime));
    files["ca.pem"] = authority.certificate;
    files["ca-key.pem"] = authority.key;
    return absl::OkStatus();
  }

  absl::Status AddServer() {
    HONE_ASSIGN_OR_RETURN(
        const rpc::KeyPair pair,
        rpc::IssueCertificate(authority, {.common_name = options.hosts[0],
                                          .hosts = options.hosts,
                                          .server = true,
                                          .not_before = now - kClockSkew,
                                          .not_after = now + options.certificate_lifetime}));
    files["server.pem"] = pair.certificate;
    files["server-key.pem"] = pair.key;
    return absl::OkStatus();
  }

  // Adds the certificate, the token and the configuration of a caller. `name`: the name of the
  // files.
  absl::Status AddCaller(const rpc::Identity& identity, const std::string& name,
                         const std::string& use, const std::string& further = "") {
    HONE_ASSIGN_OR_RETURN(const std::string token, rpc::RandomToken());
    const absl::Time not_after = now + options.certificate_lifetime;
    HONE_ASSIGN_OR_RETURN(const rpc::KeyPair pair,
                          rpc::IssueCertificate(authority, {.common_name = name,
                                                            .uri = rpc::IdentityUri(identity),
                                                            .token_hash = rpc::HashToken(token),
                                                            .not_before = now - kClockSkew,
                                                            .not_after = not_after}));
    HONE_ASSIGN_OR_RETURN(const rpc::CertificateFacts facts,
                          rpc::DescribeCertificate(pair.certificate));
    absl::StrAppend(&files["issued"], rpc::IssuedLine({facts.serial, identity}, not_after));
    files[absl::StrCat(name, ".pem")] = pair.certificate;
    files[absl::StrCat(name, "-key.pem")] = pair.key;
    files[absl::StrCat(name, ".token")] = token + "\n";
    absl::StrAppend(&files["tokens"], rpc::TokenLine(identity, token));
    files[absl::StrCat(name, ".conf")] = absl::StrCat(
        "# ", use, "\n",
        "server = ", QuoteConfigValue(absl::StrCat(options.hosts[0], ":", options.port)), "\n",
        "ca = ", QuoteConfigValue(authority.certificate), "\n",
        "certificate = ", QuoteConfigValue(pair.certificate), "\n",
        "key = ", QuoteConfigValue(pair.key), "\n", "token = ", QuoteConfigValue(token), "\n",
        further);
    return absl::OkStatus();
  }

  absl::Status AddWorker(const std::string& worker) {
    const std::string name = absl::StrCat("worker-", worker);
    if (files.contains(absl::StrCat(name, ".conf"))) {
      return absl::InvalidArgumentError(absl::StrCat("the worker ", worker, " is named twice"));
    }
    return AddCaller(
        {.name = worker, .role = rpc::Role::kWorker}, name,
        absl::StrCat("For the worker ", worker, ": hone-worker --config ", name, ".conf"),
        absl::StrCat("name = ", QuoteConfigValue(worker), "\n"));
  }

  void AddConfig() {
    const auto path = [&](const std::string& name) { return QuoteConfigValue(PathOf(name)); };
    files["hone.toml"] = absl::StrCat(
        "# Made by hone-server init. deploy/README.md describes every key. Options on the command\n"
        "# line override this file. hone-server --check-config checks it.\n\n"
        "# Addresses for clients, workers and administrators. 0.0.0.0 stands for every address of\n"
        "# this machine.\n"
        "listen = [",
        absl::StrJoin(listen, ", ",
                      [](std::string* out, const std::string& address) {
                        absl::StrAppend(out, "\"", address, "\"");
                      }),
        "]\n"
        "# Or one address for each, so that a firewall can tell them apart:\n"
        "# listen-clients = [\"0.0.0.0:7070\"]\n"
        "# listen-workers = [\"0.0.0.0:7071\"]\n"
        "# listen-admin = [\"127.0.0.1:7072\"]\n\n"
        "store = ",
        QuoteConfigValue(options.store),
        "\n\n"
        "# The server's certificate, and how callers identify themselves: by a token, or by a\n"
        "# certificate of this authority. \"require\": every caller needs a certificate, with or\n"
        "# without a token.\n"
        "certificate = ",
        path("server.pem"), "\nkey = ", path("server-key.pem"), "\nclient-ca = ", path("ca.pem"),
        "\nclient-certificates = \"accept\"\ntokens = ", path("tokens"),
        "\nrevoked = ", path("revoked"),
        "\n\n"
        "# The audit log of calls, as JSON lines.\n"
        "audit-log = ",
        QuoteConfigValue(absl::StrCat(StoreFolder(), "/audit.jsonl")),
        "\n\n"
        "# log-format = \"json\"\n"
        "# metrics-listen = \"127.0.0.1:9070\"\n"
        "# rate-limit = 1000\n");
  }
};

// The name becomes part of file names.
absl::Status CheckWorkerName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
  if (!name.empty() && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the worker name \"", name, "\" may hold letters, digits, '-', '_' and '.' only"));
}

absl::Status CheckHost(const std::string& host) {
  const bool plain = std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_.:*", c);
  });
  if (absl::StrContains(host, "://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--host '", host, "' is a URL; give the host alone, as hone.internal"));
  }
  // An IPv6 address has at least two colons.
  if (std::count(host.begin(), host.end(), ':') == 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--host '", host, "' has a port; give the host alone, and the port with --port"));
  }
  if (!host.empty() && host.size() <= 253 && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--host '", host, "' is not the name or the address of a machine, as hone.internal is"));
}

absl::Status CheckAbsent(const Maker& maker) {
  for (const auto& [name, content] : maker.files) {
    struct stat info;
    if (lstat(maker.PathOf(name).c_str(), &info) == 0) {
      return absl::AlreadyExistsError(
          absl::StrCat(maker.PathOf(name),
                       " exists: a server was set up here before, and its keys would be lost; give "
                       "another folder, or remove it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::array<const Command*, 3> ListOfflineCommands(Command& app) {
  return {&app.AddCommand("restore", kRestore), &app.AddCommand("merge", kMerge),
          &app.AddCommand("revoke", kRevoke)};
}

absl::StatusOr<RevokeReport> Revoke(const std::string& folder, const std::string& who,
                                    absl::Time now) {
  const std::string issued_path = absl::StrCat(folder, "/issued");
  const std::string revoked_path = absl::StrCat(folder, "/revoked");
  const std::string tokens_path = absl::StrCat(folder, "/tokens");
  HONE_ASSIGN_OR_RETURN(const std::string issued_text, ReadOwn(issued_path));
  const absl::StatusOr<std::vector<rpc::IssuedCertificate>> issued = rpc::ParseIssued(issued_text);
  if (!issued.ok()) return InFile(issued_path, issued.status());
  HONE_ASSIGN_OR_RETURN(const std::string revoked_text, ReadOwn(revoked_path));
  const absl::StatusOr<rpc::RevocationList> revoked = rpc::RevocationList::Parse(revoked_text);
  if (!revoked.ok()) return InFile(revoked_path, revoked.status());
  HONE_ASSIGN_OR_RETURN(const std::string tokens_text, ReadOwn(tokens_path));
  const absl::StatusOr<rpc::TokenTable> tokens = rpc::TokenTable::Parse(tokens_text);
  if (!tokens.ok()) return InFile(tokens_path, tokens.status());

  std::map<std::string, std::string> owners;  // serial → role and name
  const auto add = [&](const std::string& serial, const std::string& owner) {
    if (!revoked->Contains(serial)) owners.emplace(serial, owner);
  };
  const auto owner_of = [](const rpc::IssuedCertificate& certificate) {
    return absl::StrCat(rpc::RoleName(certificate.identity.role), " ", certificate.identity.name);
  };
  RevokeReport report;
  bool found = false;
  for (const rpc::TokenTable::Entry& entry : tokens->entries()) {
    if (entry.identity.name != who) continue;
    report.tokens.push_back(who);
    found = true;
  }
  for (const rpc::IssuedCertificate& certificate : *issued) {
    if (certificate.identity.name != who) continue;
    add(certificate.serial, owner_of(certificate));
    found = true;
  }
  std::error_code error;
  if (!found && std::filesystem::is_regular_file(who, error)) {
    HONE_ASSIGN_OR_RETURN(const std::string pem, ReadFile(who));
    const absl::StatusOr<rpc::CertificateFacts> facts = rpc::DescribeCertificate(pem);
    if (!facts.ok()) return InFile(who, facts.status());
    add(facts->serial, facts->subject);
    found = true;
  }
  if (const absl::StatusOr<std::string> serial = rpc::ParseSerial(who); !found && serial.ok()) {
    for (const rpc::IssuedCertificate& certificate : *issued) {
      if (certificate.serial != *serial) continue;
      add(certificate.serial, owner_of(certificate));
      found = true;
    }
  }
  if (!found) {
    return absl::NotFoundError(absl::StrCat("'", who, "' is unknown: ", issued_path,
                                            " lists no caller and no serial number of this ",
                                            "name, and it is no file; for a certificate that was "
                                            "issued elsewhere, give its file, or add "
                                            "its serial number to ",
                                            revoked_path, " by hand"));
  }
  std::string lines;
  for (const auto& [serial, owner] : owners) {
    absl::StrAppend(&lines, serial, "  # ", owner, ", revoked on ", rpc::FormatDay(now), "\n");
    report.serials.push_back(serial);
  }
  if (!lines.empty() && !revoked_text.empty() && revoked_text.back() != '\n') {
    lines.insert(0, "\n");
  }
  if (!lines.empty()) HONE_RETURN_IF_ERROR(rpc::AppendToFile(revoked_path, lines));
  if (!report.tokens.empty()) {
    HONE_RETURN_IF_ERROR(Rewrite(tokens_path, TokensWithout(tokens_text, who)));
  }
  return report;
}

namespace {

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-server: %s\n", std::string(status.message()).c_str());
  return ExitCodeFor(status);
}

int RunRevoke(int argc, char** argv) {
  Command app(kRevoke, "hone-server revoke");
  app.Footer(
      "Examples:\n"
      "  hone-server revoke /etc/hone pi-07\n"
      "  hone-server revoke /etc/hone 5c9a1f0e33b2d7a4810c6be09f21d574\n"
      "  hone-server revoke /etc/hone old/client.pem\n"
      "A server that runs with these files refuses the caller within two seconds.");
  std::string folder, who;
  app.Add("DIR", folder, "Folder that hone-server init has made", {Required()});
  app.Add("WHO", who,
          "Name of a caller, whose token and certificates are withdrawn; or the serial number or "
          "the file of one certificate",
          {Required()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  return Report(RevokeAndPrint(folder, who));
}

}  // namespace

std::optional<int> RunOfflineCommand(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "revoke") return RunRevoke(argc - 1, argv + 1);
  if (name != "restore" && name != "merge") return std::nullopt;
  const bool restore = name == "restore";
  Command app(restore ? kRestore : kMerge, absl::StrCat("hone-server ", name));
  app.Footer(restore
                 ? "Example:\n  hone-server restore --store /var/lib/hone/hone.db --from "
                   "/backups/hone.db\nNo server may have the store open."
                 : "Example:\n  hone-server merge --store /var/lib/hone/hone.db --from "
                   "old/hone.db\nEither may be a PostgreSQL database: postgresql://user@host/name."
                   " No server may have\none of the files open.");
  OfflineFlags flags;
  app.Add("--store", flags.store, "The store that is changed", {Required()});
  app.Add("--from", flags.from, restore ? "A backup, or any store file" : "The other store",
          {Required()});
  if (const std::optional<int> code = app.ParseOrExit(argc - 1, argv + 1)) return *code;
  umask(077);  // only this user may read what a server keeps
  absl::Status status = CheckIsThere(flags.from);
  if (status.ok()) status = restore ? Restore(flags) : Merge(flags);
  return Report(status);
}

std::vector<std::string> ListenAddresses(const std::vector<std::string>& hosts, int port) {
  std::vector<std::string> listen;
  bool is_local = false;
  for (const std::string& host : hosts) {
    const rpc::Address address{.host = host, .port = port};
    in6_addr ip;
    const bool is_ip =
        inet_pton(AF_INET, host.c_str(), &ip) == 1 || inet_pton(AF_INET6, host.c_str(), &ip) == 1;
    if (!is_ip && !address.IsLocal()) return {absl::StrCat("0.0.0.0:", port)};
    is_local = is_local || address.IsLocal();
    listen.push_back(address.ToText());
  }
  if (!is_local) listen.push_back(absl::StrCat("localhost:", port));
  return listen;
}

absl::StatusOr<InitReport> Initialize(const InitOptions& given, absl::Time now) {
  for (const std::string& host : given.hosts) HONE_RETURN_IF_ERROR(CheckHost(host));
  for (const std::string& worker : given.workers) HONE_RETURN_IF_ERROR(CheckWorkerName(worker));
  InitOptions options = given;
  std::error_code error;
  const std::string folder = std::filesystem::absolute(options.folder, error).lexically_normal();
  for (const char* local : {"localhost", "127.0.0.1", "::1"}) {
    if (std::find(options.hosts.begin(), options.hosts.end(), local) == options.hosts.end()) {
      options.hosts.push_back(local);
    }
  }
  if (options.store.empty()) options.store = absl::StrCat(folder, "/hone.db");
  if (!absl::StrContains(options.store, "://")) {
    options.store = std::filesystem::absolute(options.store, error).lexically_normal();
  }
  Maker maker{.options = options,
              .folder = folder,
              .listen = ListenAddresses(given.hosts, given.port),
              .now = now};
  HONE_RETURN_IF_ERROR(maker.AddAuthority());
  HONE_RETURN_IF_ERROR(maker.AddServer());
  maker.files["tokens"] =
      "# The tokens that the server accepts: role (client, worker or admin), name and SHA-256.\n"
      "# The name of a worker may end in *, which stands for every name that begins like it.\n"
      "# A running server reads a changed file again within two seconds. A caller that sends a\n"
      "# token without a line is refused, and so is the certificate that was made with it; one "
      "that\n"
      "# sends none needs a certificate of the authority.\n";
  maker.files["issued"] =
      "# The certificates that the authority has issued to callers: serial number, role, name and\n"
      "# last day. hone worker-config adds to it, and hone-server revoke looks callers up in it.\n";
  maker.files["revoked"] =
      "# The serial numbers of the certificates that the server refuses, one per line.\n"
      "# hone-server revoke adds to it, and a running server reads it again within two seconds.\n";
  HONE_RETURN_IF_ERROR(maker.AddCaller({.name = "admin", .role = rpc::Role::kAdmin}, "admin",
                                       "For administrators: hone --config admin.conf"));
  HONE_RETURN_IF_ERROR(maker.AddCaller({.name = "client", .role = rpc::Role::kClient}, "client",
                                       "For users: copy it to ~/.config/hone/client.conf, or use "
                                       "hone --config client.conf"));
  for (const std::string& worker : options.workers) {
    HONE_RETURN_IF_ERROR(maker.AddWorker(worker));
  }
  maker.AddConfig();
  HONE_RETURN_IF_ERROR(CheckAbsent(maker));
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  InitReport report{.config = maker.PathOf("hone.toml"), .listen = maker.listen};
  for (const auto& [name, content] : maker.files) {
    const std::string path = maker.PathOf(name);
    // Another command may make the same folder at this time.
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    absl::Status status =
        fd < 0 ? ErrnoStatus(errno, absl::StrCat("create ", path)) : absl::OkStatus();
    if (fd >= 0) {
      close(fd);
      report.files.push_back(path);
      status = WriteFileAtomically(path, content, Durability::kMachine, /*mode=*/0600);
    }
    if (status.ok()) continue;
    // Files that stay would prevent a second attempt, for example on a disk with more space.
    for (const std::string& file : report.files) std::filesystem::remove(file, error);
    return status;
  }
  return report;
}

}  // namespace hone::service

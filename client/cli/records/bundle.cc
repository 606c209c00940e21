#include "client/cli/records/bundle.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/record_selection.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/secret.h"
#include "common/rpc/signature.h"

namespace hone::cli {
namespace {

constexpr char kBundleKey[] = "hone_bundle";
constexpr int kBundleVersion = 1;
constexpr size_t kBundlePiece = 128 << 10;

std::string SignatureLine(absl::string_view signature) {
  return absl::StrCat(Json{{"signature", absl::BytesToHexString(signature)}}.dump(), "\n");
}

// The bytes that are written as hex in a member of a line; "" if it has no such member.
std::string BytesIn(absl::string_view line, const char* member) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(member) || !json[member].is_string()) return "";
  const std::string hex = json[member];
  const bool is_hex = hex.size() % 2 == 0 && absl::c_all_of(hex, absl::ascii_isxdigit);
  return is_hex ? absl::HexStringToBytes(hex) : "";
}

// FailedPrecondition: the first line is not that of a bundle.
absl::Status CheckFirstLine(absl::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("hone_records")) {
    return absl::FailedPreconditionError(
        "this is an export of hone records export, which is not signed; hone records import reads "
        "it");
  }
  if (!json.is_object() || !json.contains(kBundleKey)) {
    return absl::FailedPreconditionError(
        "this is not a bundle; hone bundle export writes one, or its beginning was changed");
  }
  if (json[kBundleKey] == kBundleVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the bundle has version ", json[kBundleKey].dump(),
                   "; this program reads version ", kBundleVersion));
}

// The last line of an export.
absl::string_view LastLine(absl::string_view text) {
  text.remove_suffix(text.empty() || text.back() != '\n' ? 0 : 1);
  return text.substr(text.rfind('\n') + 1);
}

// The beginning of a public key, for people.
std::string ShortKey(absl::string_view public_key) {
  return absl::BytesToHexString(public_key.substr(0, 8));
}

absl::Status WithPath(const absl::Status& error, absl::string_view path) {
  return absl::Status(error.code(), absl::StrCat(path, ": ", error.message()));
}

absl::StatusOr<std::string> ReadVerifyKey(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string pem, ReadFile(path));
  const absl::StatusOr<std::string> key = rpc::ParsePublicKey(pem);
  return key.ok() ? key : WithPath(key.status(), path);
}

struct BundleFile {
  std::string bytes;
  absl::string_view records;  // the export in `bytes`
  std::string public_key;
  int64_t record_count = 0;
};

// Reads and verifies a bundle. Errors as for ReadFile and VerifyBundle.
absl::StatusOr<std::unique_ptr<BundleFile>> ReadBundle(const std::string& path,
                                                       const std::string& key_path) {
  auto file = std::make_unique<BundleFile>();
  HONE_ASSIGN_OR_RETURN(file->public_key, ReadVerifyKey(key_path));
  HONE_ASSIGN_OR_RETURN(file->bytes, ReadFile(path));
  const absl::StatusOr<absl::string_view> records = VerifyBundle(file->bytes, file->public_key);
  if (!records.ok()) return WithPath(records.status(), path);
  file->records = *records;
  file->record_count = RecordsOfExport(LastLine(*records));
  return file;
}

struct BundleExport {
  std::string path;
  std::string key;
  RecordSelection which;
};

absl::Status ExportBundle(const Globals& globals, const BundleExport& options) {
  const absl::StatusOr<std::string> pem = rpc::ReadSecretFile(options.key);
  // Not a permission that the server has refused.
  if (!pem.ok()) return absl::InvalidArgumentError(pem.status().message());
  const absl::StatusOr<std::string> key = rpc::PublicKeyOfPrivate(*pem);
  if (!key.ok()) return WithPath(key.status(), options.key);
  HONE_ASSIGN_OR_RETURN(v1::ListRecordsRequest filter, ReadSelection(options.which));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_RETURN_IF_ERROR(CompleteSelection(*session, filter));
  std::string text;
  HONE_RETURN_IF_ERROR(session->connection().ExportRecords(filter, [&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return absl::OkStatus();
  }));
  const int64_t records = RecordsOfExport(LastLine(text));
  HONE_ASSIGN_OR_RETURN(const std::string bundle, SignBundle(text, *pem));
  HONE_RETURN_IF_ERROR(WithExitCode(WriteFileAtomically(options.path, bundle), kExitFailed));
  if (globals.json) {
    return PrintJson({{"path", options.path},
                      {"bytes", bundle.size()},
                      {"record_count", records},
                      {"key", absl::BytesToHexString(*key)}});
  }
  PrintWrapped(absl::StrCat("wrote ", options.path, ": ", Counted(records, "record"),
                            ", signed with key ", ShortKey(*key)));
  return absl::OkStatus();
}

struct BundleInput {
  std::string path;
  std::string key;
};

absl::Status ImportBundle(const Globals& globals, const BundleInput& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<BundleFile> file,
                        ReadBundle(options.path, options.key));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  absl::string_view rest = file->records;
  HONE_ASSIGN_OR_RETURN(const v1::ImportRecordsResponse counts,
                        session->connection().ImportRecords([&]() -> absl::StatusOr<std::string> {
                          const std::string piece(rest.substr(0, kBundlePiece));
                          rest.remove_prefix(piece.size());
                          return piece;
                        }));
  if (globals.json) {
    Json json = FieldsJson(counts);
    json["key"] = absl::BytesToHexString(file->public_key);
    return PrintJson(std::move(json));
  }
  PrintWrapped(absl::StrCat(Counted(counts.added(), "record"), " added, ", counts.known(),
                            " already in the store; signed with key ", ShortKey(file->public_key)));
  return absl::OkStatus();
}

absl::Status ShowVerified(const Globals& globals, const BundleInput& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<BundleFile> file,
                        ReadBundle(options.path, options.key));
  if (globals.json) {
    return PrintJson({{"path", options.path},
                      {"record_count", file->record_count},
                      {"key", absl::BytesToHexString(file->public_key)}});
  }
  PrintWrapped(absl::StrCat(options.path, ": ", Counted(file->record_count, "record"),
                            ", signed with key ", ShortKey(file->public_key)));
  return absl::OkStatus();
}

void AddBundleInput(Command& command, BundleInput& input) {
  command.Add("file", input.path, "File that hone bundle export wrote", {Required(), NotEmpty()});
  command.Add("--verify", input.key, "FILE with the public key of the signer, PEM",
              {Required(), NotEmpty()});
}

}  // namespace

absl::StatusOr<std::string> SignBundle(absl::string_view export_text,
                                       absl::string_view private_pem) {
  HONE_ASSIGN_OR_RETURN(const std::string key, rpc::PublicKeyOfPrivate(private_pem));
  const Json first = {{kBundleKey, kBundleVersion}, {"key", absl::BytesToHexString(key)}};
  std::string text = absl::StrCat(first.dump(), "\n", export_text);
  HONE_ASSIGN_OR_RETURN(const std::string signature, rpc::Sign(private_pem, text));
  return absl::StrCat(text, SignatureLine(signature));
}

absl::StatusOr<absl::string_view> VerifyBundle(absl::string_view bundle,
                                               absl::string_view public_key) {
  const size_t first_end = std::min(bundle.find('\n'), bundle.size());
  const absl::string_view first = bundle.substr(0, first_end);
  HONE_RETURN_IF_ERROR(CheckFirstLine(first));
  const absl::string_view last = LastLine(bundle);
  const absl::string_view content = bundle.substr(0, last.data() - bundle.data());
  const std::string signature = BytesIn(last, "signature");
  // The line is compared as a whole, so that it cannot be written in another way either.
  if (content.size() <= first.size() || bundle.substr(content.size()) != SignatureLine(signature)) {
    return absl::FailedPreconditionError(
        "the last line is not a signature: the bundle was truncated, or changed at its end");
  }
  if (const std::string signer = BytesIn(first, "key"); signer != public_key) {
    return absl::FailedPreconditionError(
        absl::StrCat("the bundle is signed with ",
                     signer.empty() ? "an unknown key" : absl::StrCat("key ", ShortKey(signer)),
                     ", not with the given key ", ShortKey(public_key)));
  }
  if (!rpc::IsSignatureOf(public_key, content, signature)) {
    return absl::FailedPreconditionError(
        "the signature is wrong: the bundle was changed after it was signed");
  }
  return content.substr(first_end + 1);
}

void AddBundle(Command& app, Globals& globals) {
  Command& bundle =
      app.AddCommand("bundle", "Ship records as a signed file, such as those of a CPU family");
  bundle.RequireCommand(1, 1);
  bundle.Footer(
      "Examples:\n"
      "  openssl genpkey -algorithm ed25519 -out key.pem\n"
      "  openssl pkey -in key.pem -pubout -out key.pub.pem\n"
      "  hone bundle export zen3.bundle --best --sign key.pem\n"
      "  hone bundle import zen3.bundle --verify key.pub.pem");

  Command& out = bundle.AddCommand("export", "Write records to a file, and sign it");
  auto written = std::make_shared<BundleExport>();
  out.Add("file", written->path, "File to write", {Required(), NotEmpty()});
  AddSelection(out, written->which);
  out.Add("--sign", written->key,
          "FILE with your private Ed25519 key, PEM, which other users cannot read",
          {Required(), NotEmpty()});
  Complete(out, globals,
           "The file has the records as hone records export writes them, and an Ed25519 signature "
           "of all of it. --target selects the records of a target.\n\n"
           "Examples:\n"
           "  hone bundle export zen3.bundle --best --sign key.pem\n"
           "  hone bundle export conv.bundle --op conv2d --target avx2 --sign key.pem",
           [&globals, written] { return ExportBundle(globals, *written); });

  Command& in = bundle.AddCommand(
      "import", "Add the records of a bundle whose signature is right: all of them or none");
  auto read = std::make_shared<BundleInput>();
  AddBundleInput(in, *read);
  CompleteWithoutTarget(
      in, globals,
      "A bundle that is not signed with this key, or that was changed or truncated, is refused "
      "with exit code 1, and nothing is added. The signature says who made the records. They are "
      "trusted no more than those of hone records import: nothing is published before hone "
      "revalidate has built and measured it here.\n\n"
      "Examples:\n"
      "  hone bundle import zen3.bundle --verify key.pub.pem\n"
      "  hone revalidate",
      [&globals, read] { return ImportBundle(globals, *read); });

  Command& verify =
      bundle.AddCommand("verify", "Check the signature of a bundle, without a server");
  auto checked = std::make_shared<BundleInput>();
  AddBundleInput(verify, *checked);
  CompleteWithoutTarget(verify, globals,
                        "The exit code is 1 if the signature is wrong.\n\n"
                        "Examples:\n"
                        "  hone bundle verify zen3.bundle --verify key.pub.pem",
                        [&globals, checked] { return ShowVerified(globals, *checked); });
}

}  // namespace hone::cli

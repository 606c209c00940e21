#include "common/rpc/revocation.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/certificate.h"

namespace hone::rpc {
namespace {

constexpr size_t kMaxSerialDigits = 40;  // 20 bytes: RFC 5280, 4.1.2.2
constexpr size_t kMostShown = 60;

// Calls `read` with the words of each line that has any. Errors get the number of the line.
absl::Status ForEachLine(absl::string_view text,
                         absl::FunctionRef<absl::Status(std::vector<absl::string_view>)> read) {
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipWhitespace());
    if (words.empty()) continue;
    if (const absl::Status status = read(std::move(words)); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ParseSerial(absl::string_view text) {
  const std::string digits = absl::AsciiStrToLower(absl::StrReplaceAll(text, {{":", ""}}));
  bool valid = !digits.empty();
  for (const char c : digits) valid = valid && absl::ascii_isxdigit(static_cast<unsigned char>(c));
  const size_t first = digits.find_first_not_of('0');
  if (!valid || first == std::string::npos || digits.size() - first > kMaxSerialDigits) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text.substr(0, kMostShown),
                     "' is not the serial number of a certificate, which has 1 to 40 hex digits"));
  }
  return digits.substr(first);
}

absl::StatusOr<RevocationList> RevocationList::Parse(absl::string_view text) {
  RevocationList list;
  HONE_RETURN_IF_ERROR(ForEachLine(text, [&](std::vector<absl::string_view> words) {
    if (words.size() != 1) {
      return absl::InvalidArgumentError(
          "more than one word; a line has the serial number of a certificate, and a comment after "
          "#");
    }
    absl::StatusOr<std::string> serial = ParseSerial(words[0]);
    if (serial.ok()) list.serials_.insert(*std::move(serial));
    return serial.status();
  }));
  return list;
}

std::string IssuedLine(const IssuedCertificate& issued, absl::Time not_after) {
  return absl::StrCat(issued.serial, " ", RoleName(issued.identity.role), " ", issued.identity.name,
                      " ", FormatDay(not_after), "\n");
}

absl::Status AppendToFile(const std::string& path, absl::string_view lines) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
  const ssize_t written = write(fd, lines.data(), lines.size());
  int error = written == static_cast<ssize_t>(lines.size()) ? 0 : written < 0 ? errno : ENOSPC;
  if (error == 0 && fsync(fd) != 0) error = errno;
  close(fd);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, absl::StrCat("write ", path));
}

absl::StatusOr<std::vector<IssuedCertificate>> ParseIssued(absl::string_view text) {
  std::vector<IssuedCertificate> all;
  HONE_RETURN_IF_ERROR(ForEachLine(text, [&](std::vector<absl::string_view> words) -> absl::Status {
    if (words.size() != 4) {
      return absl::InvalidArgumentError(
          "not four words: serial number, role, name and last day of the certificate");
    }
    IssuedCertificate issued{.identity = {.name = std::string(words[2])}};
    HONE_ASSIGN_OR_RETURN(issued.serial, ParseSerial(words[0]));
    HONE_ASSIGN_OR_RETURN(issued.identity.role, RoleFromName(words[1]));
    all.push_back(std::move(issued));
    return absl::OkStatus();
  }));
  return all;
}

}  // namespace hone::rpc

#ifndef HONE_COMMON_RPC_REVOCATION_H_
#define HONE_COMMON_RPC_REVOCATION_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/role.h"

namespace hone::rpc {

// Returns the usual form of a certificate's serial number: lower-case hex digits without leading
// zeros. Also reads the forms that OpenSSL prints, in upper case or with colons. InvalidArgument:
// not a number of 1 to 20 bytes.
absl::StatusOr<std::string> ParseSerial(absl::string_view text);

// The certificates that a server refuses although their authority is trusted. The text form has one
// serial number per line, and # begins a comment. Immutable after Parse, and therefore thread-safe.
class RevocationList {
 public:
  // InvalidArgument: a line is not a serial number; the message contains the line number.
  static absl::StatusOr<RevocationList> Parse(absl::string_view text);

  // `serial` is in the usual form.
  bool Contains(absl::string_view serial) const { return serials_.contains(serial); }
  bool IsEmpty() const { return serials_.empty(); }

 private:
  absl::flat_hash_set<std::string> serials_;
};

// A certificate that an authority has issued to a caller. The folder of the authority lists them in
// the file "issued", so that the certificate of a lost machine can be revoked. The text form has
// one line per certificate, and # begins a comment:
//   SERIAL ROLE NAME LAST-DAY
struct IssuedCertificate {
  std::string serial;
  Identity identity;
};
std::string IssuedLine(const IssuedCertificate& issued, absl::Time not_after);
// Appends to a file with such lines, which keeps its owner, and creates it for this user if it does
// not exist. Errors as for ErrnoStatus.
absl::Status AppendToFile(const std::string& path, absl::string_view lines);
// InvalidArgument: a line is not an entry; the message contains the line number.
absl::StatusOr<std::vector<IssuedCertificate>> ParseIssued(absl::string_view text);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_REVOCATION_H_

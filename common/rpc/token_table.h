#ifndef HONE_COMMON_RPC_TOKEN_TABLE_H_
#define HONE_COMMON_RPC_TOKEN_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/role.h"

namespace hone::rpc {

// The tokens that a server knows, by their hashes. The text form has one line per token, and #
// begins a comment:
//   ROLE NAME SHA256
// Immutable after Parse, and therefore thread-safe.
class TokenTable {
 public:
  struct Entry {
    Identity identity;
    std::string hash;  // HashToken
  };

  // InvalidArgument: a line is not an entry, or a name or a token appears twice; the message
  // contains the line number, but no hash.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // Returns the owner of a token; nullopt if the token is unknown. Compares all entries, so that
  // the time is the same for every token.
  std::optional<Identity> Find(absl::string_view token) const;
  // Whether an entry has this hash.
  bool HasHash(absl::string_view hash) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Returns the line of an entry, with its newline.
std::string TokenLine(const Identity& identity, absl::string_view token);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_TOKEN_TABLE_H_

#include "common/rpc/token_table.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/rpc/secret.h"

namespace hone::rpc {
namespace {

constexpr size_t kHashDigits = 64;
constexpr size_t kMaxName = 128;

bool IsHash(absl::string_view text) {
  return text.size() == kHashDigits &&
         absl::c_all_of(text, [](char c) { return absl::ascii_isxdigit(c); });
}

absl::StatusOr<TokenTable::Entry> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipWhitespace());
  if (words.size() != 3) {
    return absl::InvalidArgumentError("not three words: role, name and hash of the token");
  }
  TokenTable::Entry entry;
  HONE_ASSIGN_OR_RETURN(entry.identity.role, RoleFromName(words[0]));
  if (words[1].size() > kMaxName) return absl::InvalidArgumentError("the name is too long");
  entry.identity.name = std::string(words[1]);
  if (!IsHash(words[2])) {
    return absl::InvalidArgumentError("the hash is not 64 hex digits (the SHA-256 of the token)");
  }
  entry.hash = absl::AsciiStrToLower(words[2]);
  return entry;
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  TokenTable table;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<Entry> entry = ParseLine(line);
    if (entry.ok()) {
      for (const Entry& other : table.entries_) {
        if (other.identity.name == entry->identity.name) {
          entry = absl::InvalidArgumentError("the name was used before");
        } else if (other.hash == entry->hash) {
          entry = absl::InvalidArgumentError(
              absl::StrCat("the token already belongs to ", other.identity.name));
        }
        if (!entry.ok()) break;
      }
    }
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", entry.status().message()));
    }
    table.entries_.push_back(*std::move(entry));
  }
  return table;
}

std::optional<Identity> TokenTable::Find(absl::string_view token) const {
  const std::string hash = HashToken(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (EqualSecrets(entry.hash, hash)) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->identity;
}

bool TokenTable::HasHash(absl::string_view hash) const {
  return absl::c_any_of(entries_, [&](const Entry& entry) { return entry.hash == hash; });
}

std::string TokenLine(const Identity& identity, absl::string_view token) {
  return absl::StrCat(RoleName(identity.role), " ", identity.name, " ", HashToken(token), "\n");
}

}  // namespace hone::rpc

#ifndef HONE_COMMON_BASE_CONFIG_FILE_H_
#define HONE_COMMON_BASE_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // all elements of a list, or the one value
  int line = 0;                     // from 1
};

// Parses Hone's configuration format, a subset of TOML:
//   # a comment
//   key = "text"                  with the escapes \n, \t, \\ and \"
//   key = 'text'                  verbatim
//   key = 17                      numbers, true and false need no quotes
//   key = ["a", "b"]              a list, which may span several lines
//   key = '''                     verbatim text of several lines; the first line break is dropped
//   ...'''
// Keys consist of letters, digits, - and _. There are no sections. InvalidArgument: anything else,
// or a duplicate key; the message begins with "line N:".
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text);

// Quotes the text as a value. REQUIRES: a text of several lines does not contain '''.
std::string QuoteConfigValue(absl::string_view text);

// Whether users other than the owner and the group have access. Such a file must not hold a secret.
bool OthersHaveAccess(const std::string& path);

// Returns Hone's folder in one of the XDG directories: $`variable`/hone, or ~/`usual`/hone if
// the variable does not hold an absolute path. "" if $HOME does not hold one either.
std::string UserFolder(const char* variable, absl::string_view usual);

// The usual folder of a server's configuration: /etc/hone for root and for users without a folder
// of their own, otherwise $XDG_CONFIG_HOME/hone/server or ~/.config/hone/server.
std::string DefaultServerFolder();

}  // namespace hone

#endif  // HONE_COMMON_BASE_CONFIG_FILE_H_

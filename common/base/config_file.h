#ifndef HONE_COMMON_BASE_CONFIG_FILE_H_
#define HONE_COMMON_BASE_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// A setting of a configuration file.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // of a list; else one
  int line = 0;                     // from 1
};

// Reads the one form of all configuration files of Hone, a part of TOML:
//   # a comment
//   key = "text"                  with \n, \t, \" and \\ as usual
//   key = 'text'                  as it stands
//   key = 17                      numbers and true or false stand without quotes
//   key = ["a", "b"]              a list, which may go over several lines
//   key = '''                     a text of several lines, as it stands; the first line break does
//   ...'''                        not count
// Keys are words of letters, digits, - and _. There are no sections. InvalidArgument, beginning
// with "line N:": anything else, or a key that appears twice.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text);

// The text as a value, in quotes.
std::string QuoteConfigValue(absl::string_view text);

// Where hone-server init puts what it makes unless it is told otherwise: /etc/hone for root, else
// $XDG_CONFIG_HOME/hone/server or ~/.config/hone/server.
std::string DefaultServerFolder();

}  // namespace hone

#endif  // HONE_COMMON_BASE_CONFIG_FILE_H_

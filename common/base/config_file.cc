#include "common/base/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace hone {
namespace {

constexpr absl::string_view kBlock = "'''";

bool IsKeyCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; }
bool IsBareCharacter(char c) { return absl::ascii_isalnum(c) || absl::StrContains("+-._", c); }

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<ConfigEntry>> Parse() {
    std::vector<ConfigEntry> entries;
    std::set<std::string> keys;
    while (SkipBlank(), !text_.empty()) {
      HONE_ASSIGN_OR_RETURN(ConfigEntry entry, ParseEntry());
      if (!keys.insert(entry.key).second) {
        return Error(entry.line, absl::StrCat("'", entry.key, "' is set twice"));
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  static absl::Status Error(int line, absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", why));
  }
  absl::Status Error(absl::string_view why) const { return Error(line_, why); }

  char Take() {
    const char c = text_[0];
    text_.remove_prefix(1);
    if (c == '\n') ++line_;
    return c;
  }
  void SkipSpaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\r')) Take();
  }
  void SkipComment() {
    SkipSpaces();
    if (text_.empty() || text_[0] != '#') return;
    while (!text_.empty() && text_[0] != '\n') Take();
  }
  // Skips empty lines and comments.
  void SkipBlank() {
    while (SkipComment(), !text_.empty() && text_[0] == '\n') Take();
  }

  absl::StatusOr<ConfigEntry> ParseEntry() {
    ConfigEntry entry{.line = line_};
    if (text_[0] == '[') return Error("sections are not supported");
    while (!text_.empty() && IsKeyCharacter(text_[0])) entry.key += Take();
    if (entry.key.empty()) {
      return Error("a line is 'key = value'; a key consists of letters, digits, - and _");
    }
    SkipSpaces();
    if (text_.empty() || text_[0] != '=') {
      return Error(absl::StrCat("'=' is missing after '", entry.key, "'"));
    }
    Take();
    SkipSpaces();
    if (!text_.empty() && text_[0] == '[') {
      HONE_RETURN_IF_ERROR(ParseList(entry));
    } else {
      HONE_ASSIGN_OR_RETURN(entry.values.emplace_back(), ParseValue());
    }
    SkipComment();
    if (!text_.empty() && text_[0] != '\n') {
      return Error(absl::StrCat("unexpected text after the value of '", entry.key, "'"));
    }
    return entry;
  }

  absl::Status ParseList(ConfigEntry& entry) {
    Take();
    while (true) {
      SkipBlank();
      if (text_.empty()) return Error(entry.line, "the closing ']' is missing");
      if (text_[0] == ']') break;
      HONE_ASSIGN_OR_RETURN(entry.values.emplace_back(), ParseValue());
      SkipBlank();
      if (text_.empty() || (text_[0] != ',' && text_[0] != ']')) {
        return Error("the values of a list must be separated by commas");
      }
      if (text_[0] == ',') Take();
    }
    Take();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ParseValue() {
    if (absl::StartsWith(text_, kBlock)) return ParseBlock();
    if (absl::StartsWith(text_, "'")) return ParseLiteral();
    if (absl::StartsWith(text_, "\"")) return ParseQuoted();
    std::string word;
    while (!text_.empty() && IsBareCharacter(text_[0])) word += Take();
    if (word.empty()) return Error("the value is missing");
    const bool number = absl::ascii_isdigit(word[0]) || absl::StrContains("+-.", word[0]);
    if (word != "true" && word != "false" && !number) {
      return Error(absl::StrCat("the text ", word, " must be quoted: \"", word, "\""));
    }
    if (!text_.empty() && !absl::StrContains(" \t\r\n,]#", text_[0])) {
      return Error("text must be quoted");
    }
    return word;
  }

  absl::StatusOr<std::string> ParseBlock() {
    const int begin = line_;
    const size_t end = text_.find(kBlock, kBlock.size());
    if (end == absl::string_view::npos) return Error(begin, "the closing ''' is missing");
    std::string value(text_.substr(kBlock.size(), end - kBlock.size()));
    for (size_t i = 0; i < end + kBlock.size(); ++i) Take();
    value = absl::StrReplaceAll(value, {{"\r\n", "\n"}});
    if (absl::StartsWith(value, "\n")) value.erase(0, 1);
    return value;
  }

  absl::StatusOr<std::string> ParseLiteral() {
    Take();
    std::string value;
    while (!text_.empty() && text_[0] != '\'' && text_[0] != '\n') value += Take();
    if (text_.empty() || text_[0] == '\n') return Error("the closing ' is missing");
    Take();
    return value;
  }

  absl::StatusOr<std::string> ParseQuoted() {
    Take();
    std::string value;
    while (!text_.empty() && text_[0] != '"' && text_[0] != '\n') {
      char c = Take();
      if (c == '\\') {
        if (text_.empty()) break;
        switch (const char escaped = Take()) {
          case 'n':
            c = '\n';
            break;
          case 't':
            c = '\t';
            break;
          case '"':
          case '\\':
            c = escaped;
            break;
          default:
            return Error("only n, t, \" and \\ may follow \\ in a text; or use single quotes");
        }
      }
      value += c;
    }
    if (text_.empty() || text_[0] == '\n') return Error("the closing \" is missing");
    Take();
    return value;
  }

  absl::string_view text_;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // a byte order mark
  return Parser(text).Parse();
}

std::string QuoteConfigValue(absl::string_view text) {
  if (absl::StrContains(text, '\n')) return absl::StrCat(kBlock, "\n", text, kBlock);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

bool OthersHaveAccess(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && (info.st_mode & S_IRWXO) != 0;
}

std::string UserFolder(const char* variable, absl::string_view usual) {
  if (const char* folder = std::getenv(variable); folder != nullptr && *folder == '/') {
    return absl::StrCat(folder, "/hone");
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? absl::StrCat(home, "/", usual, "/hone") : "";
}

std::string DefaultServerFolder() {
  const std::string own = geteuid() == 0 ? "" : UserFolder("XDG_CONFIG_HOME", ".config");
  return own.empty() ? "/etc/hone" : absl::StrCat(own, "/server");
}

}  // namespace hone

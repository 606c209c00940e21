#include "client/cli/suggested_command.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hone::cli {
namespace {

// The options as a shell reads them, each after a blank.
struct Repeated {
  std::string connection;
  std::string admin_connection;  // of commands that only administrators may use
  std::string target;
  bool needs_server = false;  // for commands that measure
  std::string asked_server;   // what precedes its empty answers
};

// What the server suggests to administrators alone.
constexpr absl::string_view kAdminCommand = "workers resume ";

Repeated& TheRepeated() {
  static auto* const repeated = new Repeated;
  return *repeated;
}

}  // namespace

std::string ShellWord(absl::string_view word) {
  constexpr absl::string_view kPlain = "%+,-./:=@_";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_isalnum(byte) || !absl::ascii_isascii(byte) || absl::StrContains(kPlain, c);
  });
  if (plain) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void SetRepeatedOptions(absl::Span<const RepeatedOption> connection, absl::string_view target) {
  Repeated& repeated = TheRepeated();
  repeated = {};
  for (const RepeatedOption& option : connection) {
    absl::StrAppend(&repeated.connection, " ", option.name);
    if (!option.value.empty()) absl::StrAppend(&repeated.connection, " ", ShellWord(option.value));
  }
  repeated.admin_connection = repeated.connection;
  if (!target.empty()) repeated.target = absl::StrCat(" --target ", ShellWord(target));
}

void NameAdminConfig() { TheRepeated().admin_connection = " --config admin.conf"; }

void NeedServerOfTarget() { TheRepeated().needs_server = true; }

void SetAskedServer(absl::string_view server, absl::string_view source) {
  TheRepeated().asked_server =
      source.empty() ? absl::StrCat("the server ", server, ": ")
                     : absl::StrCat("the server ", server, ", which ", source,
                                    " names (--local asks this machine's own store instead): ");
}

std::string FromServer(absl::string_view answer) {
  return absl::StrCat(TheRepeated().asked_server, answer);
}

std::string SuggestedCommand(absl::string_view words) {
  return absl::StrCat("hone ", words, TheRepeated().connection);
}

std::string SuggestedAdminCommand(absl::string_view words) {
  return absl::StrCat("hone ", words, TheRepeated().admin_connection);
}

std::string SuggestedCommandForTarget(absl::string_view words) {
  return absl::StrCat("hone ", words, TheRepeated().target, TheRepeated().connection);
}

std::string SuggestedMeasurement(absl::string_view words) {
  return absl::StrCat(
      SuggestedCommandForTarget(words),
      TheRepeated().needs_server ? " --server ADDR (a server with a worker of that target)" : "");
}

std::string WithRepeatedOptions(absl::string_view text) {
  constexpr absl::string_view kBegin = "\"hone ";
  std::string out;
  while (true) {
    const size_t begin = text.find(kBegin);
    const size_t end = begin == text.npos ? begin : text.find('"', begin + 1);
    if (end == text.npos) break;
    const bool is_for_admin = absl::StartsWith(text.substr(begin + kBegin.size()), kAdminCommand);
    absl::StrAppend(&out, text.substr(0, end),
                    is_for_admin ? TheRepeated().admin_connection : TheRepeated().connection);
    // The mark that ends the command must not begin the next one.
    out += '"';
    text.remove_prefix(end + 1);
  }
  return absl::StrCat(out, text);
}

std::string ToleranceOption(double tolerance) {
  return tolerance > 0 ? absl::StrCat(" --tolerance ", tolerance) : "";
}

}  // namespace hone::cli

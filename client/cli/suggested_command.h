#ifndef HONE_CLIENT_CLI_SUGGESTED_COMMAND_H_
#define HONE_CLIENT_CLI_SUGGESTED_COMMAND_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// Commands of hone that messages suggest. They repeat the options of the command line that say
// which server and which target are meant, so that a user can type them as they are printed.
// Settings from the environment and from the default configuration file apply to them anyway.
namespace hone::cli {

// A word as a POSIX shell reads it, for commands in messages: quoted unless every character is a
// letter, a digit, part of a character beyond ASCII, or one of "%+,-./:=@_".
std::string ShellWord(absl::string_view word);

// An option, and its value; "": a flag.
struct RepeatedOption {
  std::string name;
  std::string value;
};

// Sets the options that are repeated. `target`: the value of --target; "": not given. Must be
// called before there are other threads; CompleteGlobals does.
void SetRepeatedOptions(absl::Span<const RepeatedOption> connection, absl::string_view target);
// Makes commands that only administrators may use name their configuration, admin.conf, as
// hone-server init calls it, instead of the options. For callers who are not administrators.
void NameAdminConfig();

// Makes commands that measure name a server that has a worker of the target. For a private server
// on a machine that is another target.
void NeedServerOfTarget();

// Names the server that is asked, for FromServer. `source`: what names it, such as the path of a
// configuration file; "": the command line.
void SetAskedServer(absl::string_view server, absl::string_view source);
// Puts the server in front of the answer that it knows nothing. An installed configuration may have
// hidden what the store of this machine knows. Returns `answer` if the server is private.
std::string FromServer(absl::string_view answer);

// Returns a command that needs no target. `words` follow "hone" and are quoted where necessary:
// "jobs watch 7" gives "hone jobs watch 7 --server host:7070".
std::string SuggestedCommand(absl::string_view words);
// The same for a command that only administrators may use. For other callers it names the
// configuration that hone-server init makes for administrators.
std::string SuggestedAdminCommand(absl::string_view words);
// The same for a command that concerns the target.
std::string SuggestedCommandForTarget(absl::string_view words);
// The same for a command that measures. If this machine cannot measure the target, the command
// names a server to be found, see NeedServerOfTarget.
std::string SuggestedMeasurement(absl::string_view words);
// Adds the options to the commands in a text of the server. They stand between quotation marks, as
// in: "hone workers resume w".
std::string WithRepeatedOptions(absl::string_view text);
// " --tolerance 0.01", for the words of a command about operators; "" if the tolerance is strict.
std::string ToleranceOption(double tolerance);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SUGGESTED_COMMAND_H_

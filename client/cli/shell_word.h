#ifndef HONE_CLIENT_CLI_SHELL_WORD_H_
#define HONE_CLIENT_CLI_SHELL_WORD_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::cli {

// A word as a POSIX shell reads it, for commands in messages: quoted unless every character is a
// letter, a digit, part of a character beyond ASCII, or one of "%+,-./:=@_".
std::string ShellWord(absl::string_view word);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SHELL_WORD_H_

#ifndef HONE_CLIENT_CLI_OUTPUT_TERMINAL_H_
#define HONE_CLIENT_CLI_OUTPUT_TERMINAL_H_

#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/terminal.h"

// Output that fits the terminal (common/base/terminal.h).
namespace hone::cli {

// Prints a text and a newline to standard output or to `file`, wrapped if it does not fit the
// terminal. Text for standard error is printed below what standard output already got.
void PrintWrapped(absl::string_view text, absl::string_view indent = "");
void PrintWrapped(std::FILE* file, absl::string_view text, absl::string_view indent = "");

// Returns the first words of a text, as many as fit into `columns`. A first word that is too long
// is cut, but never within a number.
std::string Shortened(absl::string_view text, int columns);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_TERMINAL_H_

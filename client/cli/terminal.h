#ifndef HONE_CLIENT_CLI_TERMINAL_H_
#define HONE_CLIENT_CLI_TERMINAL_H_

#include <cstdio>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

// The width of terminals and of texts. Texts are UTF-8; each code point counts as one column.
namespace hone::cli {

inline constexpr int kUnlimitedColumns = std::numeric_limits<int>::max();

// The columns of the terminal `fd`; kUnlimitedColumns if it is not a terminal.
int TerminalColumns(int fd);

int ColumnsOf(absl::string_view text);

// Breaks the lines of a text at blanks into lines of at most `columns`; added lines begin with
// `indent`. A longer word gets a separate line. There is no newline at the end.
std::string Wrapped(absl::string_view text, int columns, absl::string_view indent = "");

// Prints a text and a newline to standard output or to `file`, wrapped if it does not fit the
// terminal.
void PrintWrapped(absl::string_view text, absl::string_view indent = "");
void PrintWrapped(std::FILE* file, absl::string_view text, absl::string_view indent = "");

// Returns the first words of a text, as many as fit into `columns`. A first word that is too long
// is cut, but never within a number.
std::string Shortened(absl::string_view text, int columns);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TERMINAL_H_

#ifndef HONE_COMMON_BASE_TERMINAL_H_
#define HONE_COMMON_BASE_TERMINAL_H_

#include <limits>
#include <string>

#include "absl/strings/string_view.h"

// The width of terminals and of texts. Texts are UTF-8; each code point counts as one column.
namespace hone {

inline constexpr int kUnlimitedColumns = std::numeric_limits<int>::max();

// The columns of the terminal `fd`, or the variable COLUMNS, if it is set; kUnlimitedColumns if it
// is not a terminal.
int TerminalColumns(int fd);

int ColumnsOf(absl::string_view text);

// Breaks the lines of a text at blanks into lines of at most `columns`; added lines begin with
// `indent`. A longer word gets a separate line. There is no newline at the end.
std::string Wrapped(absl::string_view text, int columns, absl::string_view indent = "");

}  // namespace hone

#endif  // HONE_COMMON_BASE_TERMINAL_H_

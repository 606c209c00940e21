#ifndef HONE_CLIENT_CLI_OUTPUT_TABLE_H_
#define HONE_CLIENT_CLI_OUTPUT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/output/terminal.h"

namespace hone::cli {

// The title and alignment of a column.
struct Column {
  std::string title;
  bool right = false;
  bool is_text = false;
};
inline Column Left(absl::string_view title) { return {.title = std::string(title)}; }
inline Column Right(absl::string_view title) {
  return {.title = std::string(title), .right = true};
}
// A last column of sentences, which are wrapped beside the other columns if there is room.
inline Column Text(absl::string_view title) {
  return {.title = std::string(title), .is_text = true};
}

// Columns of text, as wide as their widest cells. If a row does not fit the terminal, its remaining
// columns continue on indented lines. Only a cell that is longer than a line is broken, at blanks.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The titles and the rows, in lines of at most `columns` if their words fit, without trailing
  // blanks.
  std::string ToText(int columns = kUnlimitedColumns) const;
  // Prints the table to standard output. If it has no rows, prints the line `if_empty` instead,
  // unless that is "".
  void Print(absl::string_view if_empty = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_TABLE_H_

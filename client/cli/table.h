#ifndef HONE_CLIENT_CLI_TABLE_H_
#define HONE_CLIENT_CLI_TABLE_H_

#include <string>
#include <vector>

namespace hone::cli {

// Columns of text, aligned by their widest cell.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // A line per row and one of titles, each ended by a newline, without blanks at the end.
  std::string ToText() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TABLE_H_

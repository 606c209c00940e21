#include "client/cli/table.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hone::cli {

std::string Table::ToText() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(column.title.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - cells[i].size(), ' ');
      if (i > 0) line += "  ";
      absl::StrAppend(&line, columns_[i].right ? padding : "", cells[i],
                      columns_[i].right ? "" : padding);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return text;
}

void Table::Print(absl::string_view if_empty) const {
  const std::string text =
      rows_.empty() && !if_empty.empty() ? absl::StrCat(if_empty, "\n") : ToText();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace hone::cli

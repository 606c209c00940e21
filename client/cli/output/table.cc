#include "client/cli/output/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hone::cli {
namespace {

constexpr absl::string_view kGap = "  ";
constexpr absl::string_view kIndent = "    ";  // before the continuation of a row
constexpr int kLeastTextColumns = 24;  // the room in which text is wrapped beside other columns

}  // namespace

std::string Table::ToText(int columns) const {
  const int room = std::max(1, columns - static_cast<int>(kIndent.size()));  // for a cell
  std::vector<int> widths;
  for (const Column& column : columns_) widths.push_back(ColumnsOf(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::min(room, std::max(widths[i], ColumnsOf(row[i])));
    }
  }
  // The columns that begin a line.
  std::vector<bool> begins(widths.size(), false);
  int64_t used = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    int64_t with = used + static_cast<int64_t>(kGap.size()) + widths[i];
    if (columns_[i].is_text && with > columns &&
        columns - used - static_cast<int64_t>(kGap.size()) >= kLeastTextColumns) {
      widths[i] = columns - static_cast<int>(used + kGap.size());
      with = columns;
    }
    begins[i] = i == 0 || with > columns;
    used = i == 0 ? widths[i] : begins[i] ? static_cast<int64_t>(kIndent.size()) + widths[i] : with;
  }
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& cells) {
    const size_t begin = text.size();
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (begins[i] && i > 0) {
        absl::StripTrailingAsciiWhitespace(&line);
        if (!line.empty()) absl::StrAppend(&text, line, "\n");
        line = std::string(kIndent);
      } else if (i > 0) {
        absl::StrAppend(&line, kGap);
      }
      if (ColumnsOf(cells[i]) > widths[i]) {
        const std::string indent(i == 0 ? kIndent.size() : ColumnsOf(line), ' ');
        absl::StrAppend(&line, absl::StrReplaceAll(Wrapped(cells[i], widths[i]),
                                                   {{"\n", absl::StrCat("\n", indent)}}));
        continue;
      }
      const std::string padding(static_cast<size_t>(widths[i] - ColumnsOf(cells[i])), ' ');
      absl::StrAppend(&line, columns_[i].right ? padding : "", cells[i],
                      columns_[i].right ? "" : padding);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    if (!line.empty() || text.size() == begin) absl::StrAppend(&text, line, "\n");
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_row(titles);
  for (const auto& row : rows_) add_row(row);
  return text;
}

void Table::Print(absl::string_view if_empty) const {
  if (rows_.empty() && !if_empty.empty()) {
    PrintWrapped(if_empty);
  } else {
    std::fputs(ToText(TerminalColumns(STDOUT_FILENO)).c_str(), stdout);
  }
  std::fflush(stdout);
}

}  // namespace hone::cli

#include "client/cli/dataset/text_lines.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {

void TextLines::Keep(absl::string_view text) {
  if (is_too_long_) return;
  if (text.size() > most_bytes_ - line_.size()) {
    is_too_long_ = true;
    line_ = std::string();
  } else {
    line_.append(text.data(), text.size());
  }
}

absl::Status TextLines::End() {
  absl::Status status = sink_({.number = number_, .text = line_, .is_too_long = is_too_long_});
  ++number_;
  line_.clear();
  is_too_long_ = false;
  return status;
}

absl::Status TextLines::Feed(absl::string_view piece) {
  for (size_t end; (end = piece.find('\n')) != absl::string_view::npos;) {
    Keep(piece.substr(0, end));
    HONE_RETURN_IF_ERROR(End());
    piece.remove_prefix(end + 1);
  }
  Keep(piece);
  return absl::OkStatus();
}

absl::Status TextLines::Finish() {
  return line_.empty() && !is_too_long_ ? absl::OkStatus() : End();
}

absl::Status ReadTextLines(const std::string& path, size_t most_bytes, const LineSink& sink) {
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("read ", path));
  const auto close = absl::MakeCleanup([&] { std::fclose(file); });
  TextLines lines(most_bytes, sink);
  std::string piece(128 << 10, '\0');
  while (const size_t bytes = std::fread(piece.data(), 1, piece.size(), file)) {
    HONE_RETURN_IF_ERROR(lines.Feed(absl::string_view(piece).substr(0, bytes)));
  }
  if (std::ferror(file) != 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  return lines.Finish();
}

}  // namespace hone::cli

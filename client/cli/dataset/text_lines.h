#ifndef HONE_CLIENT_CLI_DATASET_TEXT_LINES_H_
#define HONE_CLIENT_CLI_DATASET_TEXT_LINES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hone::cli {

struct TextLine {
  int64_t number = 0;      // from 1
  absl::string_view text;  // without the newline; "" if it is too long
  bool is_too_long = false;
};
using LineSink = std::function<absl::Status(const TextLine& line)>;

// Splits a text that comes in pieces into lines. Never holds more than one line of the greatest
// length: the rest of a longer one is dropped as it comes.
class TextLines {
 public:
  TextLines(size_t most_bytes, LineSink sink) : most_bytes_(most_bytes), sink_(std::move(sink)) {}

  // Errors are those of the sink.
  absl::Status Feed(absl::string_view piece);
  // Passes on the last line if it has no newline.
  absl::Status Finish();

 private:
  void Keep(absl::string_view text);
  absl::Status End();

  const size_t most_bytes_;
  const LineSink sink_;
  std::string line_;
  int64_t number_ = 1;
  bool is_too_long_ = false;
};

// Feeds a file to `sink`. NotFound, Internal: the file cannot be read; otherwise errors are those
// of the sink.
absl::Status ReadTextLines(const std::string& path, size_t most_bytes, const LineSink& sink);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_TEXT_LINES_H_

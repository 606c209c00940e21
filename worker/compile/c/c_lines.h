#ifndef HONE_WORKER_COMPILE_C_C_LINES_H_
#define HONE_WORKER_COMPILE_C_C_LINES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hone::codegen {

// Lines of text, indented by the depth of their block.
class CLines {
 public:
  static constexpr size_t kWidth = 100;

  template <typename... Parts>
  void Add(const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), parts..., "\n");
  }
  // A line, or two if it is long.
  void AddIn2(absl::string_view first, absl::string_view second) {
    const bool fits = 2 * depth_ + first.size() + second.size() + 1 <= kWidth;
    const std::string gap = fits ? " " : absl::StrCat("\n", std::string(2 * depth_ + 4, ' '));
    Add(first, gap, second);
  }
  void Assign(absl::string_view to, absl::string_view symbol, absl::string_view value) {
    AddIn2(absl::StrCat(to, " ", symbol), absl::StrCat(value, ";"));
  }
  // A line that ends with "{", up to Close().
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Add(parts..., " {");
    ++depth_;
  }
  // A loop, on two lines if it is long.
  void OpenFor(absl::string_view type, absl::string_view var, absl::string_view begin,
               absl::string_view end) {
    const std::string head = absl::StrCat("for (", type, " ", var, " = ", begin, ";"),
                      rest = absl::StrCat(var, " < ", end, "; ++", var, ")");
    const bool fits = 2 * depth_ + head.size() + rest.size() + 3 <= kWidth;
    Open(head, fits ? " " : absl::StrCat("\n", std::string(2 * depth_ + 5, ' ')), rest);
  }
  void Close() {
    --depth_;
    Add("}");
  }
  void Else() {
    --depth_;
    Open("} else");
  }
  void SetDepth(size_t depth) { depth_ = depth; }
  std::string& text() { return text_; }

 private:
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_LINES_H_

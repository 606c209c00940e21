#ifndef HONE_WORKER_CODEGEN_C_C_LINES_H_
#define HONE_WORKER_CODEGEN_C_C_LINES_H_

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
  // An assignment, on two lines if it is long.
  void Assign(absl::string_view to, absl::string_view symbol, absl::string_view value) {
    const bool fits = 2 * depth_ + to.size() + symbol.size() + value.size() + 3 <= kWidth;
    const std::string gap = fits ? " " : absl::StrCat("\n", std::string(2 * depth_ + 4, ' '));
    Add(to, " ", symbol, gap, value, ";");
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

#endif  // HONE_WORKER_CODEGEN_C_C_LINES_H_

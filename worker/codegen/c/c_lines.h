#ifndef HONE_WORKER_CODEGEN_C_C_LINES_H_
#define HONE_WORKER_CODEGEN_C_C_LINES_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace hone::codegen {

// Lines of text, indented by the depth of their block.
class CLines {
 public:
  template <typename... Parts>
  void Add(const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), parts..., "\n");
  }
  // A line that ends with "{", up to Close().
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Add(parts..., " {");
    ++depth_;
  }
  void Close() {
    --depth_;
    Add("}");
  }
  void Else() {
    --depth_;
    Open("} else");
  }
  void SetDepth(int depth) { depth_ = depth; }
  std::string& text() { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_LINES_H_

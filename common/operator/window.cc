#include "common/operator/window.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::op {

ir::Axis Window::NewTaps(OpBuilder& builder) const {
  return builder.NewAxis(dimension == "w" ? "s" : dimension == "d" ? "t" : "r", kernel);
}

ir::Index Window::At(const ir::Axis& position, const ir::Axis& tap) const {
  return ir::Index::Of(position.var, stride) + ir::Index::Of(tap.var, dilation) + -padding;
}

void Window::Guard(const ir::Index& at, std::vector<ir::Condition>& guards) const {
  if (padding > 0) guards.push_back({at, extent});
}

std::vector<KeyInfo> WindowKeys(absl::string_view dimensions, bool stride_is_kernel) {
  const bool one = dimensions.size() == 1;
  const std::string each = one ? "" : " in every dimension";
  KeyInfo stride{"s", absl::StrCat("stride", each), 1};
  if (stride_is_kernel) {
    stride.default_value = -1;
    stride.default_key = "k";
  }
  std::vector<KeyInfo> keys = {{"k", absl::StrCat("kernel extent", each)},
                               stride,
                               {"p", absl::StrCat("padding on each side", each), 0, 0}};
  if (one) return keys;
  const std::string general[] = {"k", "s", "p"},
                    words[] = {"kernel extent", "stride", "padding on each side"};
  for (int what = 0; what < 3; ++what) {
    for (const char dimension : dimensions) {
      KeyInfo key{general[what] + dimension,
                  absl::StrCat(words[what], " along ", std::string(1, dimension))};
      key.minimum = what == 2 ? 0 : 1;
      key.default_key = general[what];
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

absl::StatusOr<std::vector<Window>> Windows(absl::string_view op, const Arguments& arguments,
                                            absl::string_view dimensions) {
  std::vector<Window> windows;
  bool fits = true;
  for (const char letter : dimensions) {
    const std::string dimension(1, letter), suffix = dimensions.size() == 1 ? "" : dimension;
    Window window{.dimension = dimension,
                  .extent = arguments[dimension],
                  .kernel = arguments["k" + suffix],
                  .stride = arguments["s" + suffix],
                  .padding = arguments["p" + suffix]};
    if (arguments.values.contains("dil")) window.dilation = arguments["dil"];
    const int64_t padded = window.extent + 2 * window.padding;
    // Avoids computing a reach that could overflow.
    fits &= window.kernel == 1 || (padded - 1) / window.dilation >= window.kernel - 1;
    windows.push_back(std::move(window));
  }
  const auto product = [&](auto&& number) {
    return absl::StrJoin(
        windows, "x", [&](std::string* out, const Window& w) { absl::StrAppend(out, number(w)); });
  };
  if (!fits) {
    const std::string dilated =
        windows[0].dilation == 1 ? "" : absl::StrCat(" with dilation ", windows[0].dilation);
    return absl::InvalidArgumentError(
        absl::StrCat(op, ": a kernel of ", product([](const Window& w) { return w.kernel; }),
                     dilated, " does not fit into the padded input of ",
                     product([](const Window& w) { return w.extent + 2 * w.padding; })));
  }
  return windows;
}

}  // namespace hone::op

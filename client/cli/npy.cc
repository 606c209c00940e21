#include "client/cli/npy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::client {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = 1 << 16;
constexpr size_t kMaxRank = 32;  // the limit of NumPy 1

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be read as a NumPy file: ", what));
}

// The dictionary of the header: a Python literal with three keys.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  struct Header {
    std::string descr;
    bool fortran = false;
    std::vector<int64_t> shape;
  };

  absl::StatusOr<Header> Parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    HONE_RETURN_IF_ERROR(Expect('{'));
    while (!Accept('}')) {
      HONE_ASSIGN_OR_RETURN(const std::string key, Quoted("a key"));
      HONE_RETURN_IF_ERROR(Expect(':'));
      if (key == "descr" && !descr) {
        descr = true;
        if (Peek() == '[') return Bad("its elements are structures; save one field as an array");
        HONE_ASSIGN_OR_RETURN(header.descr, Quoted("the type"));
      } else if (key == "fortran_order" && !order) {
        order = true;
        HONE_ASSIGN_OR_RETURN(header.fortran, Boolean());
      } else if (key == "shape" && !shape) {
        shape = true;
        HONE_ASSIGN_OR_RETURN(header.shape, Tuple());
      } else {
        return Bad(
            absl::StrCat("its header has an unknown or repeated key '", key.substr(0, 40), "'"));
      }
      if (!Accept(',') && Peek() != '}') return Bad("its header is malformed");
    }
    if (!descr || !order || !shape) return Bad("its header lacks descr, fortran_order or shape");
    if (!absl::StripAsciiWhitespace(text_).empty()) return Bad("text follows its header");
    return header;
  }

 private:
  char Peek() {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return text_.empty() ? '\0' : text_[0];
  }
  bool Accept(char c) {
    if (Peek() != c || c == '\0') return false;
    text_.remove_prefix(1);
    return true;
  }
  absl::Status Expect(char c) {
    return Accept(c) ? absl::OkStatus()
                     : Bad(absl::StrCat("its header lacks '", std::string(1, c), "'"));
  }
  absl::StatusOr<std::string> Quoted(absl::string_view what) {
    const char quote = Peek();
    const size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, 1) : absl::string_view::npos;
    if (end == absl::string_view::npos)
      return Bad(absl::StrCat("its header lacks ", what, " in quotes"));
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  absl::StatusOr<bool> Boolean() {
    Peek();
    if (absl::ConsumePrefix(&text_, "True")) return true;
    if (absl::ConsumePrefix(&text_, "False")) return false;
    return Bad("fortran_order is neither True nor False");
  }
  absl::StatusOr<std::vector<int64_t>> Tuple() {
    std::vector<int64_t> shape;
    HONE_RETURN_IF_ERROR(Expect('('));
    while (!Accept(')')) {
      Peek();
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) ++digits;
      int64_t extent = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &extent)) return Bad("its shape is malformed");
      text_.remove_prefix(digits);
      absl::ConsumePrefix(&text_, "L");  // Python 2
      shape.push_back(extent);
      if (shape.size() > kMaxRank)
        return Bad(absl::StrCat("it has more than ", kMaxRank, " dimensions"));
      if (!Accept(',') && Peek() != ')') return Bad("its shape is malformed");
    }
    return shape;
  }

  absl::string_view text_;
};

// The number of bytes of an element, from a type like "f4"; nullopt: not a plain number.
std::optional<int64_t> ElementBytes(absl::string_view type) {
  int64_t bytes = 0;
  if (type == "?") return 1;
  if (type.size() < 2 || absl::string_view("fiubV").find(type[0]) == absl::string_view::npos ||
      !absl::SimpleAtoi(type.substr(1), &bytes) || bytes < 1 || bytes > 16) {
    return std::nullopt;
  }
  return bytes;
}

// NumPy's name of a type, without the byte order.
absl::string_view NpyType(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return "f2";
    case ir::DType::kBF16:
      return "u2";
    case ir::DType::kF32:
      return "f4";
    case ir::DType::kF64:
      return "f8";
    case ir::DType::kI8:
    case ir::DType::kI4:
      return "i1";
    case ir::DType::kU8:
    case ir::DType::kF8E4M3:
    case ir::DType::kF8E5M2:
    case ir::DType::kU4:
      return "u1";
    case ir::DType::kI32:
      return "i4";
    case ir::DType::kI64:
      return "i8";
    case ir::DType::kBool:
      return "b1";
  }
  return "";
}

// The type under which ml_dtypes saves a type that NumPy does not have: raw bytes, such as "V2".
// "" for other types.
std::string RawType(ir::DType dtype) {
  const bool unknown =
      ir::IsPacked(dtype) || (ir::AccumulatorOf(dtype) != dtype && dtype != ir::DType::kF16);
  return unknown ? absl::StrCat("V", ir::DTypeBytes(dtype)) : "";
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", ")");
}

// The type of an array as Hone writes it: "f32[2, 3]".
std::string TextOf(const NpyArray& array) {
  int64_t bytes = 0;
  const bool is_number = array.type[0] != 'V' && absl::SimpleAtoi(array.type.substr(1), &bytes);
  const std::string name = array.type == "b1" ? "bool"
                           : is_number        ? absl::StrCat(array.type.substr(0, 1), 8 * bytes)
                                              : array.type;
  return absl::StrCat(name, "[", absl::StrJoin(array.shape, ", "), "]");
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes) {
  absl::string_view rest = bytes;
  if (!absl::ConsumePrefix(&rest, kMagic)) return Bad("it does not begin with \\x93NUMPY");
  if (rest.size() < 2) return Bad("its header is truncated");
  const int major = static_cast<unsigned char>(rest[0]);
  rest.remove_prefix(2);
  if (major != 1 && major != 2)
    return Bad(absl::StrCat("version ", major, " is not supported; use version 1 or 2"));
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (rest.size() < length_bytes) return Bad("its header is truncated");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(rest[i])) << (8 * i);
  }
  rest.remove_prefix(length_bytes);
  if (length > kMaxHeader) return Bad(absl::StrCat("its header is too long: ", length, " bytes"));
  if (rest.size() < length) return Bad("its header is truncated");
  HONE_ASSIGN_OR_RETURN(HeaderParser::Header header, HeaderParser(rest.substr(0, length)).Parse());
  rest.remove_prefix(length);

  NpyArray array{.shape = std::move(header.shape), .data = rest};
  absl::string_view type = header.descr;
  const bool big = absl::ConsumePrefix(&type, ">");
  if (!big && !absl::ConsumePrefix(&type, "<") && !absl::ConsumePrefix(&type, "|")) {
    absl::ConsumePrefix(&type, "=");
  }
  const std::optional<int64_t> element = ElementBytes(type);
  if (!element.has_value()) {
    return Bad(absl::StrCat("its elements are of type '", header.descr.substr(0, 40),
                            "', which is not a plain number"));
  }
  if (big && *element > 1) {
    return Bad("it is big-endian; save it again with a.astype(a.dtype.newbyteorder('<'))");
  }
  if (header.fortran && array.shape.size() > 1) {
    return Bad("it is in Fortran order; save it again with numpy.ascontiguousarray");
  }
  array.type = type == "?" ? "b1" : std::string(type);
  int64_t expected = *element;
  for (const int64_t extent : array.shape) {
    if (extent > 0 && expected > std::numeric_limits<int64_t>::max() / extent) {
      return Bad(absl::StrCat("its shape ", ShapeText(array.shape), " overflows"));
    }
    expected *= extent;
  }
  if (static_cast<int64_t>(array.data.size()) != expected) {
    return Bad(absl::StrCat("it has ", array.data.size(), " bytes of data, but ", TextOf(array),
                            " needs ", expected));
  }
  return array;
}

absl::Status CheckNpy(const NpyArray& array, ir::DType dtype, const ir::Shape& shape) {
  const std::string raw = RawType(dtype);
  if ((array.type == NpyType(dtype) || array.type == raw) &&
      std::equal(shape.begin(), shape.end(), array.shape.begin(), array.shape.end())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "it is ", TextOf(array), ", expected ", ir::TypeText(dtype, shape),
      raw.empty() ? "" : absl::StrCat(", in NumPy of the type ", NpyType(dtype), " or ", raw)));
}

absl::Status CheckBelow(const NpyArray& array, ir::DType dtype, int64_t bound) {
  const size_t bytes = ir::DTypeBytes(dtype);
  for (size_t i = 0; i * bytes < array.data.size(); ++i) {
    const char* const at = array.data.data() + i * bytes;
    int64_t value = 0;
    if (ir::LoadedAs(dtype) == ir::DType::kI8) {
      value = static_cast<int8_t>(*at);
    } else if (dtype == ir::DType::kI32) {
      int32_t element = 0;
      std::memcpy(&element, at, sizeof(element));
      value = element;
    } else {
      std::memcpy(&value, at, bytes);
    }
    if (value >= 0 && value < bound) continue;
    return absl::InvalidArgumentError(absl::StrCat("its element ", i, " is ", value,
                                                   "; the workload declares elements from 0 to ",
                                                   bound - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PackNpy(const NpyArray& array, ir::DType dtype) {
  const auto elements = static_cast<int64_t>(array.data.size());
  std::string packed(ir::BytesOf(dtype, elements), '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const ir::Scalar value = ir::ReadElement(ir::LoadedAs(dtype), array.data.data(), i);
    if (ir::CastTo(dtype, value) != value) {
      return absl::InvalidArgumentError(absl::StrCat("its element ", i, " is ", value.ToText(),
                                                     ", which is not a value of ",
                                                     ir::DTypeName(dtype)));
    }
    ir::WriteElement(dtype, packed.data(), i, value);
  }
  return packed;
}

std::string NpyHeader(ir::DType dtype, const ir::Shape& shape) {
  const absl::string_view order = ir::DTypeBytes(dtype) == 1 ? "|" : "<";
  std::string text = absl::StrCat("{'descr': '", order, NpyType(dtype),
                                  "', 'fortran_order': False, 'shape': ", ShapeText(shape), ", }");
  const size_t before = kMagic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += std::string("\x01\x00", 2);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace hone::client

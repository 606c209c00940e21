#include "client/network/onnx/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::ConstantData;
using graph::TensorType;
using ir::DType;

// ONNX's element types, by their numbers. Installed ONNX headers may lack the newest names.
struct ElementTypeInfo {
  absl::string_view name;
  std::optional<DType> dtype;  // nullopt: Hone does not have it
};
constexpr ElementTypeInfo kElementTypes[] = {
    {"undefined", std::nullopt},
    {"float", DType::kF32},
    {"uint8", DType::kU8},
    {"int8", DType::kI8},
    {"uint16", std::nullopt},
    {"int16", std::nullopt},
    {"int32", DType::kI32},
    {"int64", DType::kI64},
    {"string", std::nullopt},
    {"bool", DType::kBool},
    {"float16", DType::kF16},
    {"double", DType::kF64},
    {"uint32", std::nullopt},
    {"uint64", std::nullopt},
    {"complex64", std::nullopt},
    {"complex128", std::nullopt},
    {"bfloat16", DType::kBF16},
    {"float8e4m3fn", DType::kF8E4M3},
    {"float8e4m3fnuz", std::nullopt},
    {"float8e5m2", DType::kF8E5M2},
    {"float8e5m2fnuz", std::nullopt},
    {"uint4", DType::kU4},
    {"int4", DType::kI4},
    {"float4e2m1", std::nullopt},
    {"float8e8m0", std::nullopt},
    {"uint2", std::nullopt},
    {"int2", std::nullopt},
};

// Reads one tensor. The methods return errors without the name of the tensor.
class Reader {
 public:
  Reader(::onnx::TensorProto& proto, ExternalData& files, std::optional<ConstantData> raw_data)
      : proto_(proto), files_(files), raw_data_(std::move(raw_data)) {
    if (!raw_data_ && proto_.has_raw_data()) {
      raw_data_ = ConstantData(std::move(*proto_.mutable_raw_data()));
    }
  }

  absl::StatusOr<Tensor> Read() {
    HONE_ASSIGN_OR_RETURN(const DType dtype, ElementType(proto_.data_type()));
    const TensorType type{dtype, {proto_.dims().begin(), proto_.dims().end()}};
    HONE_RETURN_IF_ERROR(CheckType(type));
    if (proto_.has_segment()) return absl::UnimplementedError("is stored in segments");
    HONE_ASSIGN_OR_RETURN(ConstantData data, Data(type));
    if (dtype == DType::kBool) data = Normalized(data);
    return Tensor{type, std::move(data)};
  }

 private:
  absl::StatusOr<ConstantData> Data(const TensorType& type) {
    if (proto_.data_location() == ::onnx::TensorProto::EXTERNAL) return External(type);
    if (raw_data_) {
      HONE_RETURN_IF_ERROR(CheckCount(type, raw_data_->size(), type.bytes(), "bytes"));
      return *raw_data_;
    }
    switch (type.dtype) {
      case DType::kF32:
        return Typed<float>(type, proto_.float_data());
      case DType::kF64:
        return Typed<double>(type, proto_.double_data());
      case DType::kI64:
        return Typed<int64_t>(type, proto_.int64_data());
      case DType::kI32:
        return Typed<int32_t>(type, proto_.int32_data());
      case DType::kF16:
      case DType::kBF16:
        return Typed<uint16_t>(type, proto_.int32_data());  // their bits
      case DType::kI8:
      case DType::kU8:
      case DType::kBool:
      case DType::kF8E4M3:
      case DType::kF8E5M2:
      case DType::kI4:
      case DType::kU4:  // a number holds a byte, and thus two elements
        return Typed<uint8_t>(type, proto_.int32_data());
    }
    return absl::InternalError("has an unknown type");
  }

  static absl::Status CheckCount(const TensorType& type, int64_t count, int64_t wanted,
                                 absl::string_view what) {
    if (count == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("is ", type.ToText(), " and has ", count, " ", what, " instead of ", wanted));
  }

  // Converts the elements of a typed field, and keeps their low bits.
  template <typename T, typename Field>
  static absl::StatusOr<ConstantData> Typed(const TensorType& type, const Field& field) {
    const int64_t bytes_each = ir::DTypeBytes(type.dtype);
    HONE_RETURN_IF_ERROR(CheckCount(type, field.size(), type.bytes() / bytes_each,
                                    ir::IsPacked(type.dtype) ? "bytes" : "elements"));
    std::string bytes(type.bytes(), '\0');
    for (int i = 0; i < field.size(); ++i) {
      const T element = static_cast<T>(field[i]);
      std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
    }
    return ConstantData(std::move(bytes));
  }

  absl::StatusOr<ConstantData> External(const TensorType& type) {
    ExternalRange range;
    range.length = type.bytes();
    for (const auto& entry : proto_.external_data()) {
      if (entry.key() == "location") range.location = entry.value();
      if (entry.key() == "offset" && !absl::SimpleAtoi(entry.value(), &range.offset)) {
        return absl::InvalidArgumentError(absl::StrCat("has the offset '", entry.value(), "'"));
      }
      if (entry.key() != "length") continue;
      int64_t length;
      if (!absl::SimpleAtoi(entry.value(), &length)) {
        return absl::InvalidArgumentError(absl::StrCat("has the length '", entry.value(), "'"));
      }
      HONE_RETURN_IF_ERROR(CheckCount(type, length, type.bytes(), "bytes"));
    }
    return files_.Map(range);
  }

  // Converts booleans to 0 and 1; any byte other than 0 is true.
  static ConstantData Normalized(const ConstantData& data) {
    const absl::string_view bytes = data.bytes();
    if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0 || c == 1; })) {
      return data;
    }
    std::string normalized(bytes);
    for (char& c : normalized) c = c != 0;
    return ConstantData(std::move(normalized));
  }

  ::onnx::TensorProto& proto_;
  ExternalData& files_;
  std::optional<ConstantData> raw_data_;
};

}  // namespace

absl::StatusOr<DType> ElementType(int32_t number) {
  if (number < 0 || static_cast<size_t>(number) >= std::size(kElementTypes)) {
    return absl::InvalidArgumentError(absl::StrCat("has the unknown element type ", number));
  }
  const ElementTypeInfo& info = kElementTypes[number];
  if (info.dtype) return *info.dtype;
  if (number == 0) return absl::InvalidArgumentError("has no element type");
  return absl::UnimplementedError(
      absl::StrCat("has elements of the type ", info.name, ", which is not supported"));
}

int32_t ElementNumber(ir::DType dtype) {
  const auto* const found =
      std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                   [&](const ElementTypeInfo& element) { return element.dtype == dtype; });
  return static_cast<int32_t>(found - std::begin(kElementTypes));
}

absl::StatusOr<Tensor> ReadTensor(::onnx::TensorProto proto, ExternalData& files,
                                  std::optional<ConstantData> raw_data) {
  const std::string name = proto.name();
  absl::StatusOr<Tensor> tensor = Reader(proto, files, std::move(raw_data)).Read();
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat("tensor '", name, "' ", tensor.status().message()));
}

namespace fs = std::filesystem;

namespace {

// Returns the path of a file inside the folder, with all symbolic links resolved.
absl::StatusOr<fs::path> Resolve(const std::string& folder, const std::string& location) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("has its elements in the file '", location, "', ", why));
  };
  if (folder.empty()) return refuse("but the model is not a file in a folder");
  const fs::path relative(location);
  const bool leaves = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (location.empty() || relative.is_absolute() || leaves) {
    return refuse("which is not a path inside the model's folder");
  }
  if (location.find('\0') != std::string::npos) return refuse("which is not a path");
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot open ", folder));
  fs::path path = fs::canonical(root / relative, error);
  if (error) {
    return ErrnoStatus(error.value(),
                       absl::StrCat("has its elements in a file that cannot be opened: ",
                                    (root / relative).string()));
  }
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) return refuse("which is a link to the outside of the model's folder");
  return path;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> ExternalData::Open(const std::string& location) {
  if (const auto open = files_.find(location); open != files_.end()) return open->second;
  HONE_ASSIGN_OR_RETURN(const fs::path path, Resolve(folder_, location));
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path.string());
  if (file.ok()) return files_[location] = *std::move(file);
  return absl::Status(file.status().code(),
                      absl::StrCat("has its elements in '", location,
                                   "', which cannot be read: ", file.status().message()));
}

absl::StatusOr<graph::ConstantData> ExternalData::Map(const ExternalRange& range) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, Open(range.location));
  const int64_t size = static_cast<int64_t>(file->bytes().size());
  if (range.offset < 0 || range.offset > size || range.length > size - range.offset) {
    return absl::InvalidArgumentError(absl::StrCat("needs ", range.length, " bytes from byte ",
                                                   range.offset, " of the file '", range.location,
                                                   "', which has ", size, " bytes"));
  }
  return graph::ConstantData(file, file->bytes().substr(range.offset, range.length));
}

}  // namespace hone::onnx

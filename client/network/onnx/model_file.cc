#include "client/network/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::onnx {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, a pipe would block.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) != 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, absl::StrCat("read ", path));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("read ", path, ": it is not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

// A field of a message.
struct Field {
  int number = 0;
  absl::string_view whole;                   // including its tag
  std::optional<absl::string_view> content;  // only for bytes, text and messages
};

// Calls `visit` for each field until it returns false. Returns whether the message is well-formed
// and `visit` always returned true.
bool VisitFields(absl::string_view message, absl::FunctionRef<bool(const Field&)> visit) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  while (true) {
    const int begin = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    if (tag == 0) return begin == static_cast<int>(message.size());
    Field field{.number = WireFormatLite::GetTagFieldNumber(tag)};
    if (WireFormatLite::GetTagWireType(tag) == kBytes) {
      uint32_t size;
      if (!input.ReadVarint32(&size)) return false;
      const int at = input.CurrentPosition();
      if (size > message.size() - at || !input.Skip(static_cast<int>(size))) return false;
      field.content = message.substr(at, size);
    } else if (!WireFormatLite::SkipField(&input, tag)) {
      return false;
    }
    field.whole = message.substr(begin, input.CurrentPosition() - begin);
    if (!visit(field)) return false;
  }
}

void AppendVarint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void AppendMessage(int number, absl::string_view content, std::string& bytes) {
  AppendVarint(WireFormatLite::MakeTag(number, kBytes), bytes);
  AppendVarint(content.size(), bytes);
  bytes.append(content.data(), content.size());
}

// Copies a message without the raw data of initializers, and notes where that data is.
class Splitter {
 public:
  bool CopyModel(absl::string_view model, std::string& copy) {
    return VisitFields(model, [&](const Field& field) {
      std::string graph;
      if (field.number != ::onnx::ModelProto::kGraphFieldNumber || !field.content) {
        return Keep(field, copy);
      }
      if (!CopyGraph(*field.content, graph)) return false;
      AppendMessage(field.number, graph, copy);
      return true;
    });
  }

  std::vector<std::optional<absl::string_view>> raw_data() && { return std::move(raw_data_); }

 private:
  bool CopyGraph(absl::string_view graph, std::string& copy) {
    return VisitFields(graph, [&](const Field& field) {
      std::string tensor;
      if (field.number != ::onnx::GraphProto::kInitializerFieldNumber || !field.content) {
        return Keep(field, copy);
      }
      raw_data_.emplace_back();
      if (!CopyTensor(*field.content, tensor)) return false;
      AppendMessage(field.number, tensor, copy);
      return true;
    });
  }

  bool CopyTensor(absl::string_view tensor, std::string& copy) {
    return VisitFields(tensor, [&](const Field& field) {
      if (field.number != ::onnx::TensorProto::kRawDataFieldNumber || !field.content) {
        return Keep(field, copy);
      }
      raw_data_.back() = *field.content;
      return true;
    });
  }

  static bool Keep(const Field& field, std::string& copy) {
    copy.append(field.whole.data(), field.whole.size());
    return true;
  }

  std::vector<std::optional<absl::string_view>> raw_data_;
};

}  // namespace

absl::StatusOr<ModelFile> ParseModelFile(absl::string_view bytes) {
  ModelFile file;
  Splitter splitter;
  std::string rest;
  if (bytes.size() > std::numeric_limits<int>::max() || !splitter.CopyModel(bytes, rest) ||
      !file.model.ParseFromString(rest)) {
    return absl::InvalidArgumentError("this is not an ONNX model, or it is truncated");
  }
  file.raw_data = std::move(splitter).raw_data();
  return file;
}

}  // namespace hone::onnx

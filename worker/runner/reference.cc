#include "worker/runner/reference.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::runner {

int64_t ReferenceBytes(const Signature& signature) {
  int64_t bytes = 0;
  for (const TensorSpec& output : signature.outputs) {
    const bool wide = output.dtype == ir::DType::kF64;
    const KeptOutput kept = {.elements = output.elements, .narrow = wide ? 0u : 3u};
    for (const Filling filling : kFillings) {
      bytes += ValueBytes(output.dtype, kept, filling) +
               (TensorsPerOutput(signature) - 1) * BoundBytes(kept, filling);
    }
  }
  return bytes;
}

int64_t BytesToMakeReference(const Signature& signature, int64_t whole_bytes) {
  int64_t bytes = 0;
  for (const TensorSpec& input : signature.inputs) bytes += input.bytes();
  if (ReferenceBytes(signature) > whole_bytes) return bytes;
  for (const TensorSpec& output : signature.outputs) {
    bytes += output.elements * static_cast<int64_t>(sizeof(double)) * TensorsPerOutput(signature);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Reference>> Reference::Open(const std::string& path,
                                                           absl::string_view key,
                                                           const Signature& signature) {
  const auto wrong = [&] {
    return absl::DataLossError(
        absl::StrCat(path, " is not a reference of this workload, or is cut off"));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat file;
  const size_t header_bytes = ReferenceHeaderBytes(signature.outputs.size());
  const bool has_header = fstat(fd, &file) == 0 && file.st_size >= static_cast<off_t>(header_bytes);
  const size_t bytes = has_header ? static_cast<size_t>(file.st_size) : 0;
  void* const mapping =
      has_header ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) : MAP_FAILED;
  const int error_number = errno;
  close(fd);
  if (!has_header) return wrong();
  if (mapping == MAP_FAILED) return ErrnoStatus(error_number, absl::StrCat("map ", path));
  auto reference = std::unique_ptr<Reference>(new Reference);
  reference->mapping_ = mapping;
  reference->bytes_ = bytes;

  const char* const data = static_cast<const char*>(mapping);
  std::vector<KeptOutput> kept;
  int64_t size = static_cast<int64_t>(header_bytes);
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    uint64_t numbers[3];
    std::memcpy(numbers, data + kReferenceMagic.size() + 32 + 8 * (1 + 3 * o), sizeof numbers);
    const int64_t elements = signature.outputs[o].elements;
    if (numbers[0] != static_cast<uint64_t>(elements) || numbers[1] > numbers[0]) return wrong();
    kept.push_back({elements, static_cast<int64_t>(numbers[1]), numbers[2]});
    size += kept[o].sampled * static_cast<int64_t>(sizeof(int64_t));
    for (const Filling filling : kFillings) {
      size += ValueBytes(signature.outputs[o].dtype, kept[o], filling) +
              (TensorsPerOutput(signature) - 1) * BoundBytes(kept[o], filling);
    }
  }
  const std::string header = ReferenceHeader(key, kept);
  if (size != static_cast<int64_t>(bytes) || std::memcmp(data, header.data(), header.size()) != 0) {
    return wrong();
  }
  const char* next = data + header_bytes;
  std::vector<const int64_t*> positions(kept.size(), nullptr);
  for (size_t o = 0; o < kept.size(); ++o) {
    if (kept[o].sampled == 0) continue;
    positions[o] = reinterpret_cast<const int64_t*>(next);
    next += kept[o].sampled * static_cast<int64_t>(sizeof(int64_t));
    absl::StrAppend(&reference->sampled_, reference->sampled_.empty() ? "" : ", ", kept[o].sampled,
                    " of ", kept[o].elements, " elements of ", signature.outputs[o].name);
  }
  if (!reference->sampled_.empty()) reference->sampled_ += " were compared";
  for (const Filling filling : kFillings) {
    for (size_t o = 0; o < kept.size(); ++o) {
      const ir::DType dtype = signature.outputs[o].dtype;
      const auto take = [&next](int64_t taken) { return std::exchange(next, next + taken); };
      Expected expected{.dtype = KeptDType(dtype, kept[o].IsNarrow(filling)),
                        .narrow = kept[o].IsNarrow(filling),
                        .positions = positions[o],
                        .sampled = kept[o].sampled};
      expected.values = take(ValueBytes(dtype, kept[o], filling));
      expected.magnitudes = take(BoundBytes(kept[o], filling));
      if (signature.has_roundings) expected.roundings = take(BoundBytes(kept[o], filling));
      reference->expected_.push_back(expected);
    }
  }
  return reference;
}

Reference::~Reference() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_);
}

Expected Reference::Of(Filling filling, int output) const {
  const size_t outputs = expected_.size() / std::size(kFillings);
  return expected_[static_cast<size_t>(filling) * outputs + output];
}

}  // namespace hone::runner

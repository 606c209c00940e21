#include "common/record/artifact.h"

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hone::record {
namespace {

constexpr absl::string_view kMagic = "HONEKERN";
constexpr uint32_t kVersion = 2;
constexpr absl::string_view kElfMagic =
    "\x7f"
    "ELF";
// The beginning of an encoded target::GpuModule.
constexpr absl::string_view kGpuMagic = "HONEGPU1\n";

constexpr std::array kSections = {&Artifact::shared_object, &Artifact::object,  &Artifact::workload,
                                  &Artifact::trace,         &Artifact::program, &Artifact::target,
                                  &Artifact::reads};
constexpr size_t kHeaderBytes = kMagic.size() + 4 + 4 + 8 * kSections.size();

void AppendInteger(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> 8 * i));
}

uint64_t TakeInteger(absl::string_view& bytes, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(count);
  return value;
}

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable artifact: ", why));
}

}  // namespace

bool HoldsGpuModule(const Artifact& artifact) {
  return absl::StartsWith(artifact.shared_object, kGpuMagic);
}

std::string ReadsText(const std::vector<bool>& reads) {
  std::string text;
  for (const bool read : reads) text.push_back(read ? '1' : '0');
  return text;
}

absl::StatusOr<std::vector<bool>> InputsRead(const Artifact& artifact, size_t inputs) {
  if (artifact.reads.size() != inputs) {
    return Refuse(absl::StrCat("it says what a run reads of ", artifact.reads.size(),
                               " inputs, and its workload has ", inputs));
  }
  std::vector<bool> reads;
  for (const char read : artifact.reads) reads.push_back(read == '1');
  return reads;
}

std::string EncodeArtifact(const Artifact& artifact) {
  std::string bytes(kMagic);
  AppendInteger(bytes, kVersion, 4);
  AppendInteger(bytes, kSections.size(), 4);
  for (const auto section : kSections) AppendInteger(bytes, (artifact.*section).size(), 8);
  for (const auto section : kSections) bytes += artifact.*section;
  return bytes;
}

absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) return Refuse("it does not begin with HONEKERN");
  if (bytes.size() > kMaxArtifactBytes)
    return Refuse(absl::StrCat("it has ", bytes.size(), " bytes"));
  if (bytes.size() < kHeaderBytes) return Refuse("it is cut off in its header");
  absl::string_view rest = bytes.substr(kMagic.size());
  if (const uint64_t version = TakeInteger(rest, 4); version != kVersion) {
    return Refuse(absl::StrCat("its version is ", version, ", this program knows ", kVersion));
  }
  if (const uint64_t count = TakeInteger(rest, 4); count != kSections.size()) {
    return Refuse(absl::StrCat("it says that it has ", count, " sections"));
  }
  std::array<uint64_t, kSections.size()> lengths;
  for (uint64_t& length : lengths) length = TakeInteger(rest, 8);
  Artifact artifact;
  for (size_t i = 0; i < kSections.size(); ++i) {
    if (lengths[i] > rest.size()) return Refuse(absl::StrCat("it is cut off in section ", i));
    artifact.*kSections[i] = std::string(rest.substr(0, lengths[i]));
    rest.remove_prefix(lengths[i]);
  }
  if (!rest.empty()) return Refuse(absl::StrCat(rest.size(), " bytes follow its last section"));
  if (!absl::StartsWith(artifact.shared_object, kElfMagic) && !HoldsGpuModule(artifact)) {
    return Refuse("its shared object is not an ELF file, nor a module for a GPU");
  }
  if (artifact.reads.find_first_not_of("01") != std::string::npos) {
    return Refuse("it does not say which inputs a run reads");
  }
  return artifact;
}

}  // namespace hone::record

#include "server/tuner/cost_model/model_file.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::cost_model {
namespace {

constexpr absl::string_view kMagic = "HONEMODL";
constexpr uint32_t kLayout = 1;
constexpr size_t kDigestBytes = 16;

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot load the cost model: ", why));
}

// Decodes a file of any model.
absl::StatusOr<ModelFile> Decode(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) return Refuse("the bytes do not start with a model header");
  ByteReader reader(bytes.substr(kMagic.size()));
  const absl::StatusOr<uint32_t> layout = reader.Read<uint32_t>();
  if (!layout.ok()) return Refuse(layout.status().message());
  if (*layout != kLayout) {
    return Refuse(absl::StrCat("layout ", *layout, ", but this program reads layout ", kLayout));
  }
  ModelFile file;
  ModelHeader& header = file.header;
  if (const absl::Status status = reader.Read(header.name, header.version, header.feature_set,
                                              header.columns, file.payload);
      !status.ok()) {
    return Refuse(status.message());
  }
  if (reader.remaining() != kDigestBytes) {
    return Refuse(absl::StrCat("truncated or followed by foreign bytes: ", reader.remaining(),
                               " bytes where the digest of ", kDigestBytes, " is expected"));
  }
  Digest digest;
  HONE_RETURN_IF_ERROR(reader.Read(digest.high, digest.low));
  if (DigestOf(bytes.substr(0, bytes.size() - kDigestBytes)) != digest)
    return Refuse("damaged: the digest does not match");
  return file;
}

}  // namespace

std::string EncodeModel(const ModelHeader& header, absl::string_view payload) {
  ByteWriter writer;
  writer.Add(kLayout, header.name, header.version, header.feature_set, header.columns, payload);
  std::string bytes = absl::StrCat(kMagic, std::move(writer).Finish());
  const Digest digest = DigestOf(bytes);
  ByteWriter trailer;
  trailer.Add(digest.high, digest.low);
  return absl::StrCat(bytes, std::move(trailer).Finish());
}

absl::StatusOr<ModelFile> DecodeModel(absl::string_view bytes, const ModelHeader& expected) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, Decode(bytes));
  const ModelHeader& header = file.header;
  if (header.name != expected.name) {
    return Refuse(absl::StrCat("it is of model '", header.name, "', not '", expected.name, "'"));
  }
  if (header.version != expected.version) {
    return Refuse(absl::StrCat("version ", header.version, " of model '", header.name,
                               "', but this program reads version ", expected.version));
  }
  if (header.feature_set != expected.feature_set) {
    return Refuse(absl::StrCat("it was trained on feature set '", header.feature_set, "', not '",
                               expected.feature_set, "'"));
  }
  return file;
}

absl::StatusOr<ModelHeader> ReadModelHeader(absl::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, Decode(bytes));
  return std::move(file.header);
}

}  // namespace hone::cost_model

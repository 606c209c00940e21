#include "server/tuner/search/saved_state.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::search {
namespace {

constexpr absl::string_view kMagic = "hone.search";

}  // namespace

std::string EncodeState(const StateHeader& header, absl::string_view payload) {
  cost_model::ByteWriter writer;
  writer.Add(kMagic, header.name, header.version, payload, DigestOf(payload).low);
  return std::move(writer).Finish();
}

absl::StatusOr<absl::string_view> DecodeState(const StateHeader& header, absl::string_view state) {
  cost_model::ByteReader reader(state);
  const absl::StatusOr<absl::string_view> magic = reader.Read<absl::string_view>();
  if (!magic.ok() || *magic != kMagic)
    return absl::InvalidArgumentError("the bytes are not a saved search state");
  absl::string_view name, payload;
  uint32_t version = 0;
  uint64_t digest = 0;
  HONE_RETURN_IF_ERROR(reader.Read(name, version));
  if (name != header.name || version != header.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("the search state was saved by ", name.substr(0, 64), " version ", version,
                     ", not by ", header.name, " version ", header.version));
  }
  HONE_RETURN_IF_ERROR(reader.Read(payload, digest));
  if (digest != DigestOf(payload).low || reader.remaining() != 0)
    return absl::InvalidArgumentError("the search state is damaged");
  return payload;
}

}  // namespace hone::search

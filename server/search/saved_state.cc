#include "server/search/saved_state.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::search {
namespace {

constexpr absl::string_view kMagic = "hone.search";

}  // namespace

std::string EncodeState(const StateHeader& header, absl::string_view payload) {
  cost_model::ByteWriter writer;
  writer.AddString(kMagic);
  writer.AddString(header.name);
  writer.AddU32(header.version);
  writer.AddString(payload);
  writer.AddU64(DigestOf(payload).low);
  return std::move(writer).Finish();
}

absl::StatusOr<absl::string_view> DecodeState(const StateHeader& header, absl::string_view state) {
  cost_model::ByteReader reader(state);
  const absl::StatusOr<absl::string_view> magic = reader.String();
  if (!magic.ok() || *magic != kMagic)
    return absl::InvalidArgumentError("these bytes are no saved search state");
  HONE_ASSIGN_OR_RETURN(const absl::string_view name, reader.String());
  HONE_ASSIGN_OR_RETURN(const uint32_t version, reader.U32());
  if (name != header.name || version != header.version) {
    return absl::InvalidArgumentError(absl::StrCat("the search state is of ", name.substr(0, 64),
                                                   " ", version, ", not of ", header.name, " ",
                                                   header.version));
  }
  HONE_ASSIGN_OR_RETURN(const absl::string_view payload, reader.String());
  HONE_ASSIGN_OR_RETURN(const uint64_t digest, reader.U64());
  HONE_RETURN_IF_ERROR(CheckEnd(reader));
  if (digest != DigestOf(payload).low)
    return absl::InvalidArgumentError("the search state is damaged");
  return payload;
}

absl::Status CheckEnd(const cost_model::ByteReader& reader) {
  if (reader.remaining() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the search state has ", reader.remaining(), " bytes too many"));
}

}  // namespace hone::search

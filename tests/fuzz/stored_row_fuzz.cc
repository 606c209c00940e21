// Rows that a server reads back from its store: specs, snapshots, search events.
#include "server/job/actor/job_codec.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view text = fuzz::TextOf(data, size);
  if (const auto spec = job::DecodeSpec(text); spec.ok()) {
    const std::string once = job::EncodeSpec(*spec);
    const auto again = job::DecodeSpec(once);
    fuzz::Require(again.ok() && job::EncodeSpec(*again) == once, "a spec reads back", once);
  }
  if (const auto snapshot = job::DecodeSnapshot(text); snapshot.ok()) {
    const std::string once = job::EncodeSnapshot(*snapshot);
    const auto again = job::DecodeSnapshot(once);
    fuzz::Require(again.ok() && job::EncodeSnapshot(*again) == once, "a snapshot reads back", once);
  }
  const store::JobEvent propose{.kind = job::kProposeKind, .payload = std::string(text)};
  if (const auto event = job::DecodePropose(propose); event.ok()) {
    const auto again = job::DecodePropose(job::Encode("job", *event));
    fuzz::Require(again.ok() && again->proposals == event->proposals, "a Propose reads back");
  }
  const store::JobEvent external{.kind = job::kExternalKind, .payload = std::string(text)};
  if (const auto event = job::DecodeExternal(external); event.ok()) {
    const auto again = job::DecodeExternal(job::Encode("job", *event));
    fuzz::Require(again.ok() && again->proposal == event->proposal, "a proposal reads back");
  }
  const store::JobEvent tell{.kind = job::kTellKind, .payload = std::string(text)};
  if (const auto event = job::DecodeTell(tell); event.ok()) {
    fuzz::Require(job::DecodeTell(job::Encode("job", *event)).ok(), "a Tell reads back");
  }
  return 0;
}

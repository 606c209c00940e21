// Rows that a server reads back from its store: specs, snapshots, search events.
#include "server/task/job_codec.h"
#include "server/task/search_event.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view text = fuzz::TextOf(data, size);
  if (const auto spec = task::DecodeSpec(text); spec.ok()) {
    const std::string once = task::EncodeSpec(*spec);
    const auto again = task::DecodeSpec(once);
    fuzz::Require(again.ok() && task::EncodeSpec(*again) == once, "a spec reads back", once);
  }
  if (const auto snapshot = task::DecodeSnapshot(text); snapshot.ok()) {
    const std::string once = task::EncodeSnapshot(*snapshot);
    const auto again = task::DecodeSnapshot(once);
    fuzz::Require(again.ok() && task::EncodeSnapshot(*again) == once, "a snapshot reads back",
                  once);
  }
  const store::JobEvent propose{.kind = task::kProposeKind, .payload = std::string(text)};
  if (const auto event = task::DecodePropose(propose); event.ok()) {
    const auto again = task::DecodePropose(task::Encode("job", *event));
    fuzz::Require(again.ok() && again->proposals == event->proposals, "a Propose reads back");
  }
  const store::JobEvent tell{.kind = task::kTellKind, .payload = std::string(text)};
  if (const auto event = task::DecodeTell(tell); event.ok()) {
    fuzz::Require(task::DecodeTell(task::Encode("job", *event)).ok(), "a Tell reads back");
  }
  return 0;
}

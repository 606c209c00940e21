// Protocol messages: what FromProto accepts survives a round trip. The first byte selects the
// message.
#include "common/record/proto_convert.h"
#include "hone/v1/process.pb.h"
#include "hone/v1/types.pb.h"
#include "hone/v1/worker.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using hone::fuzz::Require;

template <typename Message>
void Convert(absl::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto plain = hone::record::FromProto(message);
  if (!plain.ok()) {
    Require(absl::IsInvalidArgument(plain.status()), "a refusal is InvalidArgument",
            plain.status().ToString());
    return;
  }
  if constexpr (requires { hone::record::ToProto(*plain); }) {
    const auto again = hone::record::FromProto(hone::record::ToProto(*plain));
    Require(again.ok(), "what was accepted is accepted again", again.status().ToString());
  }
}

}  // namespace

// Protobuf logs invalid UTF-8.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes = hone::fuzz::TextOf(data + 1, size - 1);
  namespace v1 = hone::v1;
  void (*const readers[])(absl::string_view) = {
      Convert<v1::Record>,      Convert<v1::Candidate>,    Convert<v1::MeasureResult>,
      Convert<v1::Environment>, Convert<v1::BuildRequest>, Convert<v1::BuildResponse>,
      Convert<v1::RunRequest>};
  readers[data[0] % std::size(readers)](bytes);
  return 0;
}

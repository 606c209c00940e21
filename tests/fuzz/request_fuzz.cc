// Requests of clients and workers, up to the handlers' first checks. The first byte selects the
// request.
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "server/job/actor/compiler_environment.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using hone::fuzz::Require;

void CreateJob(absl::string_view bytes) {
  hone::v1::CreateJobRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  static const auto* const environment = hone::job::MakeCompilerEnvironment(1).release();
  const auto spec = hone::service::ToSpec(request, *environment);
  Require(spec.ok() || absl::IsInvalidArgument(spec.status()), "a refusal is InvalidArgument",
          spec.status().ToString());
}

void Synchronize(absl::string_view bytes) {
  hone::v1::SynchronizeRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto report = hone::service::FromProto(request);
  Require(report.ok() || absl::IsInvalidArgument(report.status()), "a refusal is InvalidArgument",
          report.status().ToString());
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
  (data[0] % 2 == 0 ? CreateJob : Synchronize)(bytes);
  return 0;
}

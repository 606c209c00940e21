#ifndef HONE_TESTS_WORKER_RUNNER_GPU_PROCESS_H_
#define HONE_TESTS_WORKER_RUNNER_GPU_PROCESS_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/runner/opencl_modules.h"
#include "worker/agent/child_process.h"

namespace hone::runner {

// The real hone-runner with a device, and a folder for what it writes.
class GpuProcessTest : public testing::Test {
 protected:
  GpuProcessTest() {
    signal(SIGPIPE, SIG_IGN);
    std::filesystem::create_directory(folder_ / "files");
  }
  void StartWith(std::vector<std::string> words) {
    words.insert(words.begin(), absl::StrCat(std::getenv("HONE_BIN_DIR"), "/hone-runner"));
    HONE_ASSERT_OK_AND_ASSIGN(runner_, agent::ChildProcess::Start(words));
  }
  void StartOn(const std::string& device) {
    StartWith({"--device", device, "--lock", folder_ / "lock", "--write", folder_ / "files"});
  }
  absl::StatusOr<record::MeasureResult> Run(const target::GpuModule& module,
                                            int64_t limit_ms = 20000) {
    record::RunRequest request;
    request.workload = std::string(kMatmulWorkload);
    request.workload_digest = ir::ParseWorkload(kMatmulWorkload)->StructuralDigest().ToHex();
    request.artifact_path = WriteModule(folder_ / "files", module);
    request.reference_data = folder_ / "files/reference";
    request.seed = 1;
    request.time_limit_ms = limit_ms;
    HONE_RETURN_IF_ERROR(record::WriteFrame(runner_->input(),
                                            record::ToProto(request).SerializeAsString(), Limit()));
    HONE_ASSIGN_OR_RETURN(const std::string message, record::ReadFrame(runner_->output(), Limit()));
    v1::RunResponse response;
    EXPECT_TRUE(response.ParseFromString(message));
    return record::FromProto(response.result());
  }
  static absl::Time Limit() { return absl::Now() + absl::Seconds(60); }

  const TemporaryFolder folder_;
  std::unique_ptr<agent::ChildProcess> runner_;
};

}  // namespace hone::runner

#endif  // HONE_TESTS_WORKER_RUNNER_GPU_PROCESS_H_

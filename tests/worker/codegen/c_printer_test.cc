// What the C printer prints: OpenCL C as text, and its meaning, which the host's C compiler runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/lower/lower.h"
#include "tests/worker/codegen/clang_check.h"
#include "tests/worker/codegen/run_trace.h"
#include "worker/codegen/backend.h"

namespace hone::codegen {
namespace {

constexpr char kFolder[] = "tests/worker/codegen/testdata";

target::Target OpenClTarget() { return Preset("generic/opencl"); }

absl::StatusOr<Code> Print(absl::string_view trace) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ReplayText(trace));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, OpenClTarget()));
  return Generate(lowered, OpenClTarget());
}

// A file in testdata/ holds a trace file, a line "code", the launches, and the code.
// HONE_UPDATE_GOLDEN=1 rewrites the code; check the difference before you commit it.
class OpenClGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(OpenClGoldenTest, TraceGivesTheCode) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string text = content.str();
  const size_t end = text.find("\ncode\n");
  const std::string trace = end == std::string::npos ? text : text.substr(0, end + 1);
  const absl::StatusOr<Code> code = Print(trace);
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_TRUE(code->module.has_value());
  const std::string output =
      absl::StrCat(trace, "code\n", code->module->LaunchesAsJson(), "\n", code->bytes);
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << output;
  EXPECT_EQ(text, output);
  EXPECT_EQ(code->format, kOpenClSource);
  EXPECT_EQ(code->source, code->bytes);
  EXPECT_EQ(ClangErrors(code->bytes), "");
}

INSTANTIATE_TEST_SUITE_P(Files, OpenClGoldenTest,
                         testing::Values("opencl_elementwise", "opencl_matmul", "opencl_rows"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::codegen

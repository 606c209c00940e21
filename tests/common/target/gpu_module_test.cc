#include "common/target/gpu_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using ::testing::HasSubstr;

GpuModule Some() {
  return {.kind = Kind::kOpenCl,
          .arguments = 3,
          .packed_bytes = 1 << 20,
          .workspace_bytes = 64,
          .launches =
              {{.kernel = "pack", .prepack = true, .grid = {7, 1, 1}, .block = {64, 1, 1}},
               {.kernel = "matmul", .grid = {8, 4, 2}, .block = {16, 16, 1}, .shared_bytes = 4096}},
          .code = std::string("kernel void pack() {}\n\n\0binary\xff", 30)};
}

void ExpectEqual(const GpuModule& a, const GpuModule& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.arguments, b.arguments);
  EXPECT_EQ(a.packed_bytes, b.packed_bytes);
  EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
  EXPECT_EQ(a.launches, b.launches);
  EXPECT_EQ(a.code, b.code);
}

std::string Refusal(absl::string_view bytes) {
  const absl::Status status = GpuModule::Decode(bytes).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << bytes;
  return std::string(status.message());
}

// A module whose description is this text.
std::string WithJson(absl::string_view json) { return absl::StrCat("HONEGPU1\n", json, "\ncode"); }
// A good module with one part of its description replaced.
std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string json = Some().LaunchesAsJson();
  std::string changed = absl::StrReplaceAll(json, {{from, to}});
  EXPECT_NE(changed, json) << from;
  return WithJson(changed);
}

TEST(GpuModuleTest, RoundTrips) {
  for (const Kind kind : {Kind::kOpenCl, Kind::kCuda}) {
    GpuModule module = Some();
    module.kind = kind;
    HONE_ASSERT_OK_AND_ASSIGN(const GpuModule back, GpuModule::Decode(module.Encode()));
    ExpectEqual(back, module);
  }
  GpuModule no_code = Some();
  no_code.code.clear();
  EXPECT_EQ(GpuModule::Decode(no_code.Encode())->code, "");
}

// `hone export` writes this text.
TEST(GpuModuleTest, TheDescriptionIsReadable) {
  EXPECT_EQ(Some().LaunchesAsJson(),
            R"({"version":1,"kind":"opencl","arguments":3,"packed_bytes":1048576,)"
            R"("workspace_bytes":64,"launches":[)"
            R"({"kernel":"pack","prepack":true,"grid":[7,1,1],"block":[64,1,1],"shared_bytes":0},)"
            R"({"kernel":"matmul","prepack":false,"grid":[8,4,2],"block":[16,16,1],)"
            R"("shared_bytes":4096}]})");
}

TEST(GpuModuleTest, EveryTruncationOfTheDescriptionIsDetected) {
  const std::string bytes = Some().Encode();
  const size_t end = bytes.size() - Some().code.size();
  for (size_t length = 0; length < end; ++length) {
    EXPECT_FALSE(GpuModule::Decode(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
}

TEST(GpuModuleTest, RefusalsNameTheCause) {
  EXPECT_THAT(Refusal(""), HasSubstr("HONEGPU1"));
  EXPECT_THAT(Refusal("HONEGPU2\n{}\n"), HasSubstr("HONEGPU1"));
  EXPECT_THAT(Refusal(WithJson("[]")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Refusal(WithJson("{\"version\": 1,}")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Refusal(WithJson(std::string(100000, '['))), HasSubstr("not a JSON object"));
  EXPECT_THAT(Refusal(WithJson("{}")), HasSubstr("different version"));
  EXPECT_THAT(Refusal(Changed("\"version\":1", "\"version\":2")), HasSubstr("different version"));
  EXPECT_THAT(Refusal(Changed("\"opencl\"", "\"metal\"")), HasSubstr("opencl or cuda"));
  EXPECT_THAT(Refusal(Changed("\"opencl\"", "7")), HasSubstr("opencl or cuda"));
  EXPECT_THAT(Refusal(Changed("\"launches\"", "\"lunches\"")), HasSubstr("launches is missing"));
}

TEST(GpuModuleTest, AbsurdNumbersAreRefused) {
  struct Case {
    const char* from;
    const char* to;
    const char* field;
  };
  for (const Case& c : {
           Case{"\"arguments\":3", "\"arguments\":0", "arguments"},
           Case{"\"arguments\":3", "\"arguments\":1e9", "arguments"},
           Case{"\"arguments\":3", "\"arguments\":\"3\"", "arguments"},
           Case{"\"packed_bytes\":1048576", "\"packed_bytes\":-1", "packed_bytes"},
           Case{"\"packed_bytes\":1048576", "\"packed_bytes\":18446744073709551615",
                "packed_bytes"},
           Case{"\"workspace_bytes\":64", "\"workspace_bytes\":1099511627777", "workspace_bytes"},
           Case{"[8,4,2]", "[8,4,0]", "grid"},
           Case{"[8,4,2]", "[8,4]", "grid"},
           Case{"[8,4,2]", "[8,4,2147483649]", "grid"},
           Case{"[8,4,2]", "\"842\"", "grid"},
           Case{"[16,16,1]", "[16,-16,1]", "block"},
           Case{"[16,16,1]", "[16,65537,1]", "block"},
           Case{"[16,16,1]", "[16,16,1.5]", "block"},
           Case{"\"shared_bytes\":4096", "\"shared_bytes\":-4096", "shared_bytes"},
           Case{"\"prepack\":true", "\"prepack\":1", "prepack"},
           Case{"\"kernel\":\"matmul\"", "\"kernel\":7", "kernel"},
       }) {
    EXPECT_THAT(Refusal(Changed(c.from, c.to)), HasSubstr(c.field)) << c.to;
  }
}

TEST(GpuModuleTest, ListsOfLaunchesAreChecked) {
  GpuModule module = Some();
  module.launches.clear();
  EXPECT_THAT(Refusal(module.Encode()), HasSubstr("launches is missing, empty or too long"));
  module.launches.assign(1025, {.kernel = "again"});
  EXPECT_THAT(Refusal(module.Encode()), HasSubstr("launches is missing, empty or too long"));
  EXPECT_THAT(Refusal(WithJson(R"({"version":1,"kind":"cuda","arguments":1,"packed_bytes":0,)"
                               R"("workspace_bytes":0,"launches":[3]})")),
              HasSubstr("a launch is not a JSON object"));
  // Bytes that are not text.
  EXPECT_THAT(Refusal(Changed("matmul", "\xff\xfe")), HasSubstr("not a JSON object"));
}

TEST(GpuSourcesTest, SurviveTheirEncoding) {
  const GpuSources sources = {"__global__ void f() {}\n// \"é\"", ".version 8.0\n"};
  HONE_ASSERT_OK_AND_ASSIGN(const auto read, GpuSources::Decode(sources.Encode()));
  EXPECT_EQ(read, sources);
  for (const char* bytes : {"", "{}", "[1]", R"({"source": 1, "assembly": ""})",
                            "\x7f"
                            "ELF"}) {
    EXPECT_THAT(GpuSources::Decode(bytes), StatusIs(absl::StatusCode::kInvalidArgument)) << bytes;
  }
}

}  // namespace
}  // namespace hone::target

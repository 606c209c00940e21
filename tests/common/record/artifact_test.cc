#include "common/record/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status.h"

namespace hone::record {
namespace {

using ::testing::HasSubstr;

Artifact Some() {
  return {.shared_object = std::string("\x7f"
                                       "ELF\0so",
                                       7),
          .object = std::string("\x7f"
                                "ELF\0o",
                                6),
          .workload = "workload matmul",
          .trace = "trace",
          .program = "program",
          .target = "target",
          .reads = "101"};
}

std::string Refusal(absl::string_view bytes) {
  const absl::Status status = DecodeArtifact(bytes).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(status.message());
}

TEST(ArtifactTest, RoundTrips) {
  HONE_ASSERT_OK_AND_ASSIGN(const Artifact back, DecodeArtifact(EncodeArtifact(Some())));
  EXPECT_EQ(back, Some());
}

TEST(ArtifactTest, EveryTruncationIsDetected) {
  const std::string bytes = EncodeArtifact(Some());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeArtifact(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
  EXPECT_THAT(Refusal(bytes + "x"), HasSubstr("follow its last section"));
}

TEST(ArtifactTest, ErrorsNameTheCause) {
  std::string bytes = EncodeArtifact(Some());
  EXPECT_THAT(Refusal("#!/bin/sh"), HasSubstr("HONEKERN"));
  std::string other_version = bytes;
  other_version[8] = 9;
  EXPECT_THAT(Refusal(other_version), HasSubstr("version is 9"));
  std::string huge_section = bytes;
  huge_section[16 + 7] = '\x7f';  // the top byte of the first length
  EXPECT_THAT(Refusal(huge_section), HasSubstr("section 0"));
  Artifact no_elf = Some();
  no_elf.shared_object = "MZ";
  EXPECT_THAT(Refusal(EncodeArtifact(no_elf)), HasSubstr("not an ELF"));
  Artifact unknown_reads = Some();
  unknown_reads.reads = "1x1";
  EXPECT_THAT(Refusal(EncodeArtifact(unknown_reads)), HasSubstr("which inputs a run reads"));
}

TEST(ArtifactTest, SaysWhichInputsARunReads) {
  EXPECT_EQ(ReadsText({true, false, true}), "101");
  EXPECT_EQ(*InputsRead(Some(), 3), (std::vector<bool>{true, false, true}));
  EXPECT_THAT(std::string(InputsRead(Some(), 2).status().message()),
              HasSubstr("what a run reads of 3 inputs, and its workload has 2"));
}

TEST(ArtifactTest, HoldsModulesForGpus) {
  Artifact artifact = Some();
  EXPECT_FALSE(HoldsGpuModule(artifact));
  artifact.shared_object = "HONEGPU1\n{}\nkernel void f() {}";
  artifact.object.clear();
  HONE_ASSERT_OK_AND_ASSIGN(const Artifact back, DecodeArtifact(EncodeArtifact(artifact)));
  EXPECT_EQ(back, artifact);
  EXPECT_TRUE(HoldsGpuModule(back));
  artifact.shared_object = "HONEGPU2\n{}\n";
  EXPECT_THAT(Refusal(EncodeArtifact(artifact)), HasSubstr("nor a module for a GPU"));
}

}  // namespace
}  // namespace hone::record

#include "server/research/lab/recorded_set.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/research/lab/small_set.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

std::string Why(const absl::StatusOr<RecordedSet>& set) {
  return std::string(set.status().message());
}

TEST(RecordedSetTest, RoundTrips) {
  const RecordedSet set = SmallSet();
  const std::string bytes = EncodeRecordedSet(set);
  HONE_ASSERT_OK_AND_ASSIGN(const auto read, DecodeRecordedSet(bytes));
  EXPECT_EQ(read, set);
  EXPECT_LT(bytes.size(), 8000u);
  EXPECT_EQ(EncodeRecordedSet(read), bytes);
}

TEST(RecordedSetTest, EveryTruncationIsRefused) {
  const std::string bytes = EncodeRecordedSet(SmallSet());
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
    EXPECT_THAT(DecodeRecordedSet(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << size;
  }
}

TEST(RecordedSetTest, EveryChangedByteIsRefused) {
  const std::string bytes = EncodeRecordedSet(SmallSet());
  for (size_t at = 0; at < bytes.size(); at += 1 + at / 50) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    EXPECT_THAT(DecodeRecordedSet(changed), StatusIs(absl::StatusCode::kInvalidArgument)) << at;
  }
}

TEST(RecordedSetTest, ErrorsNameTheCause) {
  std::string bytes = EncodeRecordedSet(SmallSet());
  std::string newer = bytes;
  newer.replace(newer.find(" 1\n"), 3, " 2\n");
  EXPECT_THAT(Why(DecodeRecordedSet(newer)), HasSubstr("version 2"));
  EXPECT_THAT(Why(DecodeRecordedSet(newer)), HasSubstr("use a newer hone-lab"));
  EXPECT_THAT(Why(DecodeRecordedSet("matmul\n")), HasSubstr("not a recorded set"));
  EXPECT_THAT(Why(DecodeRecordedSet(bytes.substr(0, bytes.size() - 9))),
              HasSubstr("truncated or damaged"));
  bytes[bytes.find('\n') + 3] ^= 1;  // damages a digit of the digest
  EXPECT_FALSE(DecodeRecordedSet(bytes).ok());
}

TEST(RecordedSetTest, RejectsInconsistentContent) {
  RecordedSet set = SmallSet();
  set.candidates[3].measurement = 100000;
  EXPECT_THAT(Why(DecodeRecordedSet(EncodeRecordedSet(set))), HasSubstr("measurement 100000"));
  set = SmallSet();
  set.candidates[3] = set.candidates[2];
  EXPECT_THAT(Why(DecodeRecordedSet(EncodeRecordedSet(set))), HasSubstr("recorded twice"));
  set = SmallSet();
  set.measurements[0].latency_ns = 0;
  EXPECT_THAT(Why(DecodeRecordedSet(EncodeRecordedSet(set))), HasSubstr("measurement 0"));
  set = SmallSet();
  set.measurements[1].run_ms = -1;
  EXPECT_THAT(Why(DecodeRecordedSet(EncodeRecordedSet(set))), HasSubstr("measurement 1"));
}

TEST(SetFolderTest, OpensStoredSetsAndListsThemOnError) {
  const std::string folder = "tests/bench/recorded";
  HONE_ASSERT_OK_AND_ASSIGN(const auto names, RecordedSetNames(folder));
  for (const std::string& name : names) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto set, LoadRecordedSet(folder, name));
    EXPECT_EQ(set.name, name);
  }
  const auto none = LoadRecordedSet(folder, "matmul_7");
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Why(none), HasSubstr(names.front()));
  EXPECT_THAT(RecordedSetNames("tests/none"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::lab

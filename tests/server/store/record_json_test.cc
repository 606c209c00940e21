// The lines of an export, and the errors of an import.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/digest.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "server/store/exchange/exchange.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::HasSubstr;

const char kText[] = "a space";

std::string SpaceDigest() { return DigestOf(kText).ToHex(); }

record::Record Row() {
  record::Record record = ConfirmedRecord();
  record.candidate.space_digest = SpaceDigest();
  return record;
}

std::string Whole(const std::string& line) {
  return absl::StrCat(HeaderLine("a store"), TextLine(kWorkload, "a workload"),
                      TextLine(SpaceDigest(), kText), line, EndLine(2, 1, 0));
}

absl::StatusOr<ImportBatch> Read(const std::string& text) {
  RecordImport import([](const std::string&, const std::string& text) {
    return text == "a workload" ? absl::OkStatus() : absl::InvalidArgumentError("not a workload");
  });
  if (absl::Status status = import.Feed(text); !status.ok()) return status;
  return std::move(import).Finish();
}

std::string Error(const std::string& text) {
  const absl::StatusOr<ImportBatch> batch = Read(text);
  EXPECT_THAT(batch, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(batch.status().message());
}

TEST(RecordJson, EveryFieldRoundTrips) {
  record::Record record = Row();
  record.quarantined = true;
  record.quarantine_reason = "hot";
  record.result.samples_ns = {1.0 / 3, 5e-324, 1.7976931348623157e308};
  HONE_ASSERT_OK_AND_ASSIGN(const auto back,
                            RecordFromJson(nlohmann::json::parse(RecordLine(record))["record"]));
  ExpectEqual(back, record);
}

TEST(RecordJson, NanAndInfinityRoundTrip) {
  record::Record record = Row();
  record.result.outcome = record::Outcome::kCrash;
  record.result.latency_ns = std::nan("");
  record.result.dispersion = INFINITY;
  record.result.samples_ns = {-INFINITY, std::nan("")};
  HONE_ASSERT_OK_AND_ASSIGN(const auto back,
                            RecordFromJson(nlohmann::json::parse(RecordLine(record))["record"]));
  ExpectEqual(back, record);
}

TEST(RecordJson, ErrorNamesMissingAndUnknownFields) {
  const nlohmann::json whole = nlohmann::json::parse(RecordLine(Row()))["record"];
  for (const auto& [name, value] : whole.items()) {
    nlohmann::json less = whole;
    less.erase(name);
    EXPECT_THAT(std::string(RecordFromJson(less).status().message()), HasSubstr(name));
    nlohmann::json odd = whole;
    odd[name] = nlohmann::json::array({nlohmann::json::object()});
    EXPECT_THAT(std::string(RecordFromJson(odd).status().message()), HasSubstr("\"" + name + "\""));
  }
  nlohmann::json more = whole;
  more["policy"]["colour"] = "red";
  EXPECT_THAT(std::string(RecordFromJson(more).status().message()), HasSubstr("policy.colour"));
}

TEST(RecordImport, ErrorsNameTheLine) {
  const std::string good = RecordLine(Row());
  ASSERT_THAT(Read(Whole(good)), IsOk());
  const auto with = [&](const std::string& from, const std::string& to) {
    return Error(Whole(absl::StrReplaceAll(good, {{from, to}})));
  };
  EXPECT_THAT(Read(Whole(absl::StrReplaceAll(good, {{"\"trial\":42", "\"trial\":-1"}}))), IsOk())
      << "a job measured a candidate of another job";
  EXPECT_THAT(with("\"trial\":42", "\"trial\":-2"), HasSubstr("line 4: \"trial\""));
  EXPECT_THAT(with("\"trial\":42", "\"trial\":1e300"), HasSubstr("line 4: \"trial\""));
  EXPECT_THAT(with("\"outcome\":\"ok\"", "\"outcome\":\"good\""), HasSubstr("line 4: \"outcome\""));
  EXPECT_THAT(with("\"confirm\"", "\"guess\""), HasSubstr("policy.name"));
  EXPECT_THAT(with("\"latency_ns\":1234.5", "\"latency_ns\":-5.0"), HasSubstr("positive latency"));
  EXPECT_THAT(with("\"latency_ns\":1234.5", "\"latency_ns\":null"), HasSubstr("positive latency"));
  EXPECT_THAT(with(kWorkload, "../etc/passwd"), HasSubstr("digest"));
  EXPECT_THAT(with("\"target\":", "\"target\":\"x\",\"target2\":"), HasSubstr("target2"));
  EXPECT_THAT(Error(Whole("{\"record\":\n")), HasSubstr("line 4: is not a JSON object"));
  EXPECT_THAT(Error(Whole("\xff\n")), HasSubstr("line 4"));
  EXPECT_THAT(Error(Whole("[1]\n")), HasSubstr("line 4"));
  EXPECT_THAT(Error(Whole("{\"hello\":1}\n")), HasSubstr("line 4: is neither"));
  EXPECT_THAT(Error(Whole(absl::StrCat("{\"record\":", std::string(100000, '['), "\n"))),
              HasSubstr("line 4"));
}

TEST(RecordImport, ChecksHeaderAndEnd) {
  const std::string good = Whole(RecordLine(Row()));
  EXPECT_THAT(Error(""), HasSubstr("cut short"));
  EXPECT_THAT(Error(good.substr(0, good.size() - 1)), HasSubstr("cut short"));
  EXPECT_THAT(Error(good.substr(0, good.find("{\"end\""))), HasSubstr("cut short"));
  EXPECT_THAT(Error(good + RecordLine(Row())), HasSubstr("line 6: comes after"));
  EXPECT_THAT(Error(good.substr(good.find('\n') + 1)), HasSubstr("line 1"));
  EXPECT_THAT(Error("{\"hone_records\":2,\"store\":\"x\"}\n"), HasSubstr("version 2"));
  EXPECT_THAT(Error("{\"hone_records\":1}\n"), HasSubstr("line 1"));
  EXPECT_THAT(Error(absl::StrCat(HeaderLine("s"), EndLine(0, 1, 0))), HasSubstr("line 2"));
  EXPECT_THAT(Error(absl::StrCat(HeaderLine("s"), "{\"end\":{\"texts\":\"x\",\"records\":[]}}\n")),
              HasSubstr("line 2"));
}

TEST(RecordImport, TextsMustMatchTheirDigests) {
  EXPECT_THAT(
      Error(absl::StrCat(HeaderLine("s"), TextLine(SpaceDigest(), "another"), EndLine(1, 0, 0))),
      HasSubstr("line 2: the text does not match its digest"));
  EXPECT_THAT(Error(absl::StrCat(HeaderLine("s"), TextLine(kWorkload, "odd"), RecordLine(Row()),
                                 EndLine(1, 1, 0))),
              HasSubstr("line 2: not a workload"));
  EXPECT_THAT(Error(absl::StrCat(HeaderLine("s"), TextLine(SpaceDigest(), kText),
                                 TextLine(SpaceDigest(), kText), EndLine(2, 0, 0))),
              HasSubstr("line 3"));
}

}  // namespace
}  // namespace hone::store

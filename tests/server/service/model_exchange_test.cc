// The file that carries a trained model to another server: what is read back, and what is refused.

#include <functional>
#include <limits>

#include "common/base/digest.h"
#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/model_file.pb.h"
#include "server/job/actor/compiler_environment.h"
#include "server/service/services.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/model_file.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class ModelExchangeTest : public ::testing::Test {
 protected:
  ModelExchangeTest() {
    target::Target target = target::TargetByName("x86-avx2").value();
    target.calibration.fma = 0.25;
    row_ = {.key = {.name = "nearest",
                    .feature_set = "decisions",
                    .target = target.Key(),
                    .scope = "matmul"},
            .version = 7,
            .records = 900,
            .workloads = 12,
            .created_unix_ms = 1'700'000'000'000,
            .metrics = R"({"pairwise": 0.8, "factors": {"load": 1.5}})",
            .bytes = environment_.CreateModel("nearest", {}).value()->Save().value(),
            .target_text = target.ToText()};
  }

  // What an import says of a file.
  absl::Status Import(absl::string_view file) const {
    const absl::StatusOr<store::ModelRow> row = DecodeModelFile(file);
    return row.ok() ? CheckImportedModel(*row, environment_, kNow) : row.status();
  }
  void ExpectRefused(absl::string_view file, const std::string& why) const {
    EXPECT_THAT(Import(file), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  }
  // A file whose row was changed before it was written.
  std::string Changed(const std::function<void(store::ModelRow&)>& change) const {
    store::ModelRow row = row_;
    change(row);
    return EncodeModelFile(row, "builder-1 (store 0123)");
  }

  const job::FakeTaskEnvironment environment_;
  store::ModelRow row_;
};

TEST_F(ModelExchangeTest, AFileHoldsTheModelAndWhatIdentifiesIt) {
  const std::string file = EncodeModelFile(row_, "builder-1 (store 0123)");
  EXPECT_THAT(Import(file), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const store::ModelRow read, DecodeModelFile(file));
  EXPECT_EQ(read.key, row_.key);
  EXPECT_EQ(read.version, 7);
  EXPECT_EQ(read.records, 900);
  EXPECT_EQ(read.workloads, 12);
  EXPECT_EQ(read.created_unix_ms, row_.created_unix_ms);
  EXPECT_EQ(read.metrics, row_.metrics);
  EXPECT_EQ(read.bytes, row_.bytes);
  EXPECT_EQ(read.target_text, row_.target_text);
  EXPECT_EQ(read.origin, "builder-1 (store 0123)");
  // A server that passes it on is not its origin.
  EXPECT_EQ(DecodeModelFile(EncodeModelFile(read, "builder-2"))->origin, read.origin);
}

TEST_F(ModelExchangeTest, EveryTruncationAndEveryChangedByteIsRefused) {
  const std::string file = EncodeModelFile(row_, "builder-1");
  for (size_t size = 0; size < file.size(); ++size)
    ExpectRefused(absl::string_view(file).substr(0, size), "not a usable file of a model");
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    ExpectRefused(damaged, "not a usable file of a model");
  }
  ExpectRefused(file + "more", "does not match");
}

TEST_F(ModelExchangeTest, FilesOfAnotherKindAreRefused) {
  for (const std::string& bytes : {std::string(), std::string("{}"), std::string("HONEKERN\x01"),
                                   std::string(100, '\0'), row_.bytes}) {
    ExpectRefused(bytes, "does not begin with HONELRND");
  }
  std::string newer = EncodeModelFile(row_, "builder-1");
  newer[8] = 2;
  ExpectRefused(newer, "layout 2, but this program reads layout 1");
}

// The digest is right, so only the content is wrong.
TEST_F(ModelExchangeTest, AWellFormedFileWithImpossibleContentIsRefused) {
  const auto refused = [&](const std::function<void(store::ModelRow&)>& change,
                           const std::string& why) { ExpectRefused(Changed(change), why); };
  refused([](auto& row) { row.records = 0; }, "0 records");
  refused([](auto& row) { row.records = -5; }, "-5 records");
  refused([](auto& row) { row.records = std::numeric_limits<int64_t>::max(); },
          "cannot be trained");
  refused([](auto& row) { row.workloads = 901; }, "901 workloads");
  refused([](auto& row) { row.created_unix_ms = 0; }, "impossible time");
  refused([](auto& row) { row.created_unix_ms = std::numeric_limits<int64_t>::max(); },
          "impossible time");
  refused([](auto& row) { row.created_unix_ms = absl::ToUnixMillis(kNow + absl::Hours(48)); },
          "impossible time");
  refused([](auto& row) { row.metrics = "loss"; }, "not a JSON object");
  refused([](auto& row) { row.metrics = "[1]"; }, "not a JSON object");
  refused([](auto& row) { row.metrics = R"({"loss": 1e999})"; }, "not a JSON object");
  refused([](auto& row) { row.metrics = "{\"a\":" + std::string(30'000, '['); }, "not a JSON");
  refused(
      [](auto& row) {
        row.metrics = "{\"a\":" + std::string(9'000, '[') + std::string(9'000, ']') + "}";
      },
      "nested too deeply");
  refused([](auto& row) { row.metrics = "{\"a\": \"" + std::string(100'000, 'x') + "\"}"; },
          "at most 65536");
  refused([](auto& row) { row.key.name = std::string(300, 'x'); }, "the name has 300 bytes");
  refused([](auto& row) { row.key.scope = "mat\nmul"; }, "control character");
  refused([](auto& row) { row.origin = "\x1b[2J"; }, "control character");
  refused([](auto& row) { row.key.target = ""; }, "names no target");
  refused([](auto& row) { row.key.target = "x86_64-other"; }, "is described as");
  refused([](auto& row) { row.target_text = "target of nothing"; }, "its target");
  refused([](auto& row) { row.target_text += ",fork:1e99"; }, "its target");
  refused([](auto& row) { row.version = 8; }, "describes version 8");
  refused([](auto& row) { row.key.name = "residual"; }, "but holds version 7 of 'nearest'");
  refused([](auto& row) { row.bytes = ""; }, "model");
  refused([](auto& row) { row.bytes.pop_back(); }, "truncated");
}

TEST_F(ModelExchangeTest, AModelThatCannotBeLoadedIsRefused) {
  const auto with = [&](const cost_model::ModelHeader& header, const std::string& payload) {
    return Changed([&](store::ModelRow& row) {
      row.bytes = cost_model::EncodeModel(header, payload);
      row.key.name = header.name;
      row.version = header.version;
    });
  };
  ExpectRefused(with({.name = "nearest", .version = 7, .feature_set = "decisions", .columns = 3},
                     "\xff\xff\xff\xff\xff\xff\xff\x7f"),
                "not a usable file of a model");
  ExpectRefused(
      with({.name = "nearest", .version = 9, .feature_set = "decisions", .columns = 3}, ""),
      "version 9");
  ExpectRefused(with({.name = "oracle", .version = 1, .feature_set = "decisions"}, ""), "temple");
}

// A draft of GPUs would score every program of a CPU the same.
TEST_F(ModelExchangeTest, ADraftMustFitTheKindOfItsTarget) {
  cost_model::FeatureMatrix gpu{.columns = cost_model::kDraftColumns};
  std::vector<float> row(cost_model::kDraftColumns, 0);
  row[cost_model::kGpuEstimate] = 1;
  gpu.Append(row, 1);
  cost_model::DraftWeights weights;
  weights.kind = &cost_model::DraftKindOf(gpu, 0);
  cost_model::ByteWriter payload;
  weights.Serialize(payload);
  row_.key = {.name = "draft", .feature_set = "draft"};
  row_.version = 2;
  row_.bytes = cost_model::EncodeModel(
      {.name = "draft", .version = 2, .feature_set = "draft", .columns = cost_model::kDraftColumns},
      std::move(payload).Finish());
  const auto import = [&](const char* target_name) {
    const target::Target target = target::TargetByName(target_name).value();
    row_.key.target = target.Key();
    row_.target_text = target.ToText();
    return CheckImportedModel(row_, *job::MakeCompilerEnvironment(1), kNow);
  };
  row_.origin = "builder-1 (store 0123)";
  EXPECT_THAT(import("nvidia/a100"), IsOk());
  EXPECT_THAT(import("x86-avx2"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a program for a CPU")));
}

TEST_F(ModelExchangeTest, AMessageThatIsNotOneIsRefused) {
  cost_model::ByteWriter head, tail;
  head.Add(uint32_t{1});
  const std::string bytes = "HONELRND" + std::move(head).Finish() + "\x0a\xff\xff\xff\xff\x7f";
  const Digest digest = DigestOf(bytes);
  tail.Add(digest.high, digest.low);
  ExpectRefused(bytes + std::move(tail).Finish(), "message is malformed");
}

}  // namespace
}  // namespace hone::service

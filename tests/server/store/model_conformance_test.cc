// The contract of Store for trained cost models.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class ModelConformanceTest : public StoreConformanceTest {};
INSTANTIATE_TEST_SUITE_P(Stores, ModelConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

ModelRow Xgboost(const std::string& scope = "matmul", const std::string& bytes = "trees") {
  return {.key = {"xgboost", "statement", kTarget, scope},
          .version = 3,
          .records = 512,
          .workloads = 4,
          .created_unix_ms = 1700000000000,
          .metrics = R"({"top1": 0.9})",
          .bytes = bytes};
}

void ExpectEqualModels(const ModelRow& actual, const ModelRow& expected) {
  EXPECT_EQ(actual.key, expected.key);
  EXPECT_EQ(actual.version, expected.version);
  EXPECT_EQ(actual.records, expected.records);
  EXPECT_EQ(actual.workloads, expected.workloads);
  EXPECT_EQ(actual.created_unix_ms, expected.created_unix_ms);
  EXPECT_EQ(actual.metrics, expected.metrics);
  EXPECT_EQ(actual.bytes, expected.bytes);
  EXPECT_EQ(actual.size, static_cast<int64_t>(expected.bytes.size()));
}

TEST_P(ModelConformanceTest, ModelRoundTrips) {
  const ModelRow model = Xgboost("matmul", std::string("\0\xff bytes", 8));
  HONE_ASSERT_OK_AND_ASSIGN(const int64_t id, PutModel(*store_, model));
  Reopen();
  HONE_ASSERT_OK_AND_ASSIGN(const ModelRow read, store_->GetModel(model.key));
  ExpectEqualModels(read, model);
  EXPECT_EQ(read.id, id);
  ExpectEqualModels(store_->GetModelById(id).value(), model);
}

TEST_P(ModelConformanceTest, NewestModelOfAKeyIsUsed) {
  const int64_t first = PutModel(*store_, Xgboost("matmul", "old")).value();
  const int64_t second = PutModel(*store_, Xgboost("matmul", "new")).value();
  EXPECT_GT(second, first);
  EXPECT_EQ(store_->GetModel(Xgboost().key).value().bytes, "new");
  EXPECT_EQ(store_->GetModelById(first).value().bytes, "old") << "a job may still use it";
}

TEST_P(ModelConformanceTest, OnlyTheNewestModelsOfAKeyAreKept) {
  const int64_t other = PutModel(*store_, Xgboost("conv2d")).value();
  std::vector<int64_t> ids;
  for (int i = 0; i < Store::kModelsKept + 2; ++i) {
    ids.push_back(PutModel(*store_, Xgboost("matmul", absl::StrCat("trees ", i))).value());
  }
  EXPECT_THAT(store_->GetModelById(ids[1]), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->GetModelById(ids[2]).value().bytes, "trees 2");
  EXPECT_EQ(store_->GetModel(Xgboost().key).value().id, ids.back());
  EXPECT_THAT(store_->GetModelById(other), IsOk()) << "a model of another key";
}

TEST_P(ModelConformanceTest, EveryPartOfTheKeyDistinguishesModels) {
  ASSERT_THAT(PutModel(*store_, Xgboost()), IsOk());
  for (const ModelKey& key : std::vector<ModelKey>{{"gp", "statement", kTarget, "matmul"},
                                                   {"xgboost", "curve-fix", kTarget, "matmul"},
                                                   {"xgboost", "statement", "board", "matmul"},
                                                   {"xgboost", "statement", kTarget, ""}}) {
    EXPECT_THAT(store_->GetModel(key),
                StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr(key.name)));
  }
  EXPECT_THAT(store_->GetModelById(99), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(ModelConformanceTest, TheNewestOfEveryKeyIsListedWithoutItsBytes) {
  EXPECT_THAT(store_->ListModels("", "").value(), testing::IsEmpty());
  ASSERT_THAT(PutModel(*store_, Xgboost("matmul", "old")), IsOk());
  ASSERT_THAT(PutModel(*store_, Xgboost("", "of everything")), IsOk());
  ModelRow board = Xgboost();
  board.key = {"gp", "analytic", "board", "matmul"};
  ASSERT_THAT(PutModel(*store_, board), IsOk());
  ASSERT_THAT(PutModel(*store_, Xgboost("matmul", "newest")), IsOk());

  const std::vector<ModelRow> all = store_->ListModels("", "").value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].key, Xgboost("matmul").key);
  EXPECT_EQ(all[0].size, 6);
  EXPECT_EQ(all[0].metrics, Xgboost().metrics);
  EXPECT_EQ(all[1].key, board.key);
  EXPECT_EQ(all[2].key, Xgboost("").key);
  for (const ModelRow& model : all) EXPECT_EQ(model.bytes, "");

  EXPECT_EQ(store_->ListModels("xgboost", "").value().size(), 2u);
  const std::vector<ModelRow> kept = store_->ListModels("", "", /*with_earlier=*/true).value();
  EXPECT_GT(kept.size(), all.size());
  EXPECT_EQ(kept[0].id, all[0].id);
  EXPECT_EQ(absl::c_count_if(kept, [](const ModelRow& model) { return model.in_use; }), 3);
  EXPECT_EQ(store_->ListModels("", "board").value().size(), 1u);
  EXPECT_EQ(store_->ListModels("xgboost", "board").value().size(), 0u);
}

ModelRow ImportedXgboost(int64_t created_unix_ms, const std::string& bytes) {
  ModelRow model = Xgboost("matmul", bytes);
  model.created_unix_ms = created_unix_ms;
  model.origin = "builder-1 (store 0123)";
  model.target_text = "target of the origin";
  return model;
}

// An imported model is used until the server has trained one itself, and does not replace one that
// the server trained from newer records.
TEST_P(ModelConformanceTest, AnImportedModelIsUsedUntilTheServerTrainsItsOwn) {
  const ModelKey key = Xgboost().key;
  ASSERT_THAT(PutModel(*store_, ImportedXgboost(1000, "imported")), IsOk());
  ModelRow used = store_->GetModel(key).value();
  EXPECT_EQ(used.bytes, "imported");
  EXPECT_EQ(used.origin, "builder-1 (store 0123)");
  EXPECT_EQ(used.target_text, "target of the origin");
  EXPECT_TRUE(used.in_use);
  ModelRow own = Xgboost("matmul", "own");
  own.created_unix_ms = 2000;
  ASSERT_THAT(PutModel(*store_, own), IsOk());
  EXPECT_EQ(store_->GetModel(key)->bytes, "own");
  ASSERT_THAT(PutModel(*store_, ImportedXgboost(1500, "older than own")), IsOk());
  EXPECT_EQ(store_->GetModel(key)->bytes, "own");

  const std::vector<ModelRow> both = store_->ListModels("", "").value();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_FALSE(both[0].in_use);
  EXPECT_EQ(both[0].origin, "builder-1 (store 0123)");
  EXPECT_TRUE(both[1].in_use);
  EXPECT_EQ(both[1].origin, "");

  ASSERT_THAT(PutModel(*store_, ImportedXgboost(3000, "newer than own")), IsOk());
  EXPECT_EQ(store_->GetModel(key)->bytes, "newer than own");
}

TEST_P(ModelConformanceTest, ImportsDoNotRemoveWhatTheServerTrained) {
  ASSERT_THAT(PutModel(*store_, Xgboost("matmul", "own")), IsOk());
  for (int i = 0; i < Store::kModelsKept + 2; ++i)
    ASSERT_THAT(PutModel(*store_, ImportedXgboost(i + 1, absl::StrCat("import ", i))), IsOk());
  EXPECT_EQ(store_->GetModel(Xgboost().key)->bytes, "own");
}

TEST_P(ModelConformanceTest, MalformedModelsAreRefused) {
  ModelRow model = Xgboost();
  model.key.name = "";
  EXPECT_THAT(PutModel(*store_, model), StatusIs(absl::StatusCode::kInvalidArgument));
  model = Xgboost();
  model.key.target = "";
  EXPECT_THAT(PutModel(*store_, model), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PutModel(*store_, Xgboost("matmul", "")),
              StatusIs(absl::StatusCode::kInvalidArgument));
  model = Xgboost();
  model.records = -1;
  EXPECT_THAT(PutModel(*store_, model), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string huge(Store::kMaxModelBytes + 1, 'x');
  EXPECT_THAT(PutModel(*store_, Xgboost("matmul", huge)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->ListModels("", "").value(), testing::IsEmpty());
}

}  // namespace
}  // namespace hone::store

#include "server/tuner/cost_model/flat_forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x1 < 2 ? 10 : (x0 < -1 ? 20 : 30). The children are in no particular order.
FlatForest::Tree SmallTree() {
  return {.left = {3, 4, -1, -1, -1},
          .right = {1, 2, 0, 0, 0},
          .feature = {1, 0, 0, 0, 0},
          .value = {2, -1, 30, 10, 20}};
}

std::vector<float> Predict(const FlatForest& forest, const std::vector<float>& rows, int count) {
  std::vector<float> out(count, 99);
  forest.Predict(rows, absl::MakeSpan(out));
  return out;
}

void ExpectRefused(FlatForest::Tree tree, absl::string_view text) {
  const absl::Status status = FlatForest::Create({SmallTree(), tree}, 2).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tree 1: ")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(text)));
}

TEST(FlatForestTest, WithoutTreesEveryRowScoresZero) {
  EXPECT_THAT(Predict(FlatForest(), {}, 2), ElementsAre(0, 0));
}

TEST(FlatForestTest, WalksATree) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto forest, FlatForest::Create({SmallTree()}, 2));
  // A value equal to the threshold goes right.
  EXPECT_THAT(Predict(forest, {0, 1.5, -5, 2, -1, 2, 3e38f, 3e38f}, 4),
              ElementsAre(10, 20, 30, 30));
}

TEST(FlatForestTest, AddsUpTreesOfDifferentDepth) {
  const FlatForest::Tree leaf = {.left = {-1}, .right = {-1}, .feature = {0}, .value = {0.5}};
  HONE_ASSERT_OK_AND_ASSIGN(const auto forest,
                            FlatForest::Create({leaf, SmallTree(), SmallTree(), leaf}, 2));
  EXPECT_EQ(forest.trees(), 4);
  EXPECT_THAT(Predict(forest, {0, 0, 0, 5}, 2), ElementsAre(21, 61));
}

TEST(FlatForestTest, ARowScoresTheSameAtEveryPositionOfABatch) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto forest, FlatForest::Create({SmallTree()}, 2));
  for (int count = 0; count < 100; ++count) {
    std::vector<float> rows;
    std::vector<float> expected;
    for (int i = 0; i < count; ++i) {
      rows.push_back(i % 3 == 0 ? -2 : 2);
      rows.push_back(i % 2 == 0 ? 1 : 3);
      expected.push_back(i % 2 == 0 ? 10 : i % 3 == 0 ? 20 : 30);
    }
    EXPECT_EQ(Predict(forest, rows, count), expected);
  }
}

TEST(FlatForestTest, RejectsInvalidTrees) {
  FlatForest::Tree tree = SmallTree();
  tree.left[1] = 5;
  ExpectRefused(tree, "child 5, which is not one of the 5 nodes");
  tree = SmallTree();
  tree.right[1] = -2;
  ExpectRefused(tree, "child -2");
  tree = SmallTree();
  tree.right[1] = 0;
  ExpectRefused(tree, "already has a parent");
  tree = SmallTree();
  tree.feature[1] = 2;
  ExpectRefused(tree, "feature 2 of 2");
  tree = SmallTree();
  tree.value[4] = std::numeric_limits<float>::quiet_NaN();
  ExpectRefused(tree, "node 4 is not finite");
  tree = SmallTree();
  tree.value.pop_back();
  ExpectRefused(tree, "sizes");
  ExpectRefused({}, "empty");
  tree = SmallTree();
  tree.value[4] = 1e30f;
  ExpectRefused(tree, "leaf 4");
  FlatForest::Tree chain;  // each node has a leaf and the next node
  for (int32_t node = 0; node < 200; node += 2) {
    chain.left.insert(chain.left.end(), {node + 1, -1});
    chain.right.insert(chain.right.end(), {node + 2, -1});
    chain.feature.insert(chain.feature.end(), {0, 0});
    chain.value.insert(chain.value.end(), {0, 0});
  }
  chain.left.push_back(-1);
  chain.right.push_back(-1);
  chain.feature.push_back(0);
  chain.value.push_back(0);
  ExpectRefused(chain, "deeper than 64");
  EXPECT_FALSE(FlatForest::Create({}, -1).ok());
}

TEST(FlatForestTest, RoundTrips) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto forest, FlatForest::Create({SmallTree(), SmallTree()}, 2));
  ByteWriter writer;
  forest.Serialize(writer);
  const std::string bytes = std::move(writer).Finish();
  ByteReader reader(bytes);
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed, FlatForest::Parse(reader));
  EXPECT_EQ(parsed.columns(), 2);
  EXPECT_EQ(Predict(parsed, {0, 0, 0, 5}, 2), Predict(forest, {0, 0, 0, 5}, 2));
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader truncated(absl::string_view(bytes).substr(0, size));
    EXPECT_THAT(FlatForest::Parse(truncated), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(FlatForestTest, AHostileNumberOfTreesIsRefusedAtOnce) {
  ByteWriter writer;
  writer.Add(uint32_t{2}, uint32_t{16'000'000});
  const std::string bytes = std::move(writer).Finish();
  ByteReader reader(bytes);
  EXPECT_THAT(FlatForest::Parse(reader),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("at most 10000")));
}

// Damaged bytes are either refused, or they parse to a valid forest that survives a round trip.
TEST(FlatForestTest, DamagedBytesAreRejectedOrParseToAValidForest) {
  ByteWriter writer;
  FlatForest::Create({SmallTree(), SmallTree()}, 2)->Serialize(writer);
  const std::string bytes = std::move(writer).Finish();
  int refused = 0, read = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(absl::StrCat("byte ", at, ", bit ", bit));
      std::string damaged = bytes;
      damaged[at] ^= static_cast<char>(1 << bit);
      ByteReader reader(damaged);
      const auto forest = FlatForest::Parse(reader);
      if (!forest.ok()) {
        EXPECT_THAT(forest, StatusIs(absl::StatusCode::kInvalidArgument));
        ++refused;
        continue;
      }
      ++read;
      ByteWriter again;
      forest->Serialize(again);
      const std::string own = std::move(again).Finish();
      ByteReader own_reader(own);
      HONE_ASSERT_OK_AND_ASSIGN(const auto same, FlatForest::Parse(own_reader));
      EXPECT_EQ(same.columns(), forest->columns());
      EXPECT_LE(forest->trees(), 2);
      if (forest->columns() > 100) continue;
      const std::vector<float> rows(forest->columns() * 3, 1);
      const std::vector<float> scores = Predict(*forest, rows, 3);
      EXPECT_THAT(scores, testing::Each(scores[0]));
      EXPECT_TRUE(std::isfinite(scores[0]));
      EXPECT_EQ(Predict(same, rows, 3), scores);
    }
  }
  // Any finite threshold or leaf value is accepted; an invalid child index is not.
  EXPECT_GT(refused, static_cast<int>(bytes.size()));
  EXPECT_GT(read, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace hone::cost_model

#include "client/network/onnx/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/import.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

using testing::ElementsAre;
using testing::Optional;

constexpr int kFloatType = 1;

std::string Model() {
  return BytesOf(Input("x", kFloatType, "1") +
                 Initializer("a", kFloatType, "1", "raw_data: 'abcd'") +
                 Initializer("b", kFloatType, "1", "float_data: [2]") +
                 Initializer("c", kFloatType, "0", "raw_data: ''") + NodeText("Sum", "x a b", "y") +
                 Output("y"));
}

TEST(ModelFileTest, RawDataStaysInTheFile) {
  const std::string bytes = Model();
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, ParseModelFile(bytes));
  EXPECT_THAT(file.raw_data, ElementsAre(Optional(absl::string_view("abcd")), std::nullopt,
                                         Optional(absl::string_view(""))));
  EXPECT_EQ(file.raw_data[0]->data(), bytes.data() + bytes.find("abcd"));
  ::onnx::ModelProto whole;
  ASSERT_TRUE(whole.ParseFromString(bytes));
  for (auto& initializer : *whole.mutable_graph()->mutable_initializer()) {
    initializer.clear_raw_data();
  }
  EXPECT_EQ(file.model.SerializeAsString(), whole.SerializeAsString());
}

// A message may have a field several times: parts of the graph are merged, and of bytes the last
// ones count.
TEST(ModelFileTest, RepeatedFields) {
  ::onnx::ModelProto first, second;
  first.mutable_graph()->add_initializer()->set_raw_data("1234");
  second.mutable_graph()->add_initializer()->set_raw_data("5678");
  const std::string bytes = absl::StrCat(first.SerializeAsString(), second.SerializeAsString());
  auto file = ParseModelFile(bytes);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->model.graph().initializer_size(), 2);
  EXPECT_THAT(file->raw_data, ElementsAre(Optional(absl::string_view("1234")),
                                          Optional(absl::string_view("5678"))));

  ::onnx::TensorProto tensor, again;
  tensor.set_raw_data("1234");
  again.set_raw_data("56");
  const std::string twice = absl::StrCat(tensor.SerializeAsString(), again.SerializeAsString());
  const auto wrapped = [](char field, const std::string& content) {
    return absl::StrCat(std::string(1, static_cast<char>(field << 3 | 2)),
                        std::string(1, static_cast<char>(content.size())), content);
  };
  const std::string model = wrapped(7, wrapped(5, twice));
  file = ParseModelFile(model);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->raw_data, ElementsAre(Optional(absl::string_view("56"))));
}

TEST(ModelFileTest, TruncatedFilesAreRefused) {
  const std::string bytes = Model();
  const auto whole = ParseModelFile(bytes);
  ASSERT_THAT(whole, IsOk());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    ::onnx::ModelProto expected;
    EXPECT_EQ(ParseModelFile(part).ok(), expected.ParseFromString(part)) << size;
  }
}

}  // namespace
}  // namespace hone::onnx

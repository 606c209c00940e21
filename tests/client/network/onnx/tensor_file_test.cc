#include "client/network/onnx/tensor_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "common/ir/interpreter.h"
#include "onnx/onnx_pb.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

using ir::DType;
using ir::Scalars;

absl::StatusOr<NamedTensor> Parse(const std::string& text) {
  ::onnx::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: 't' " + text, &proto)) << text;
  return ParseTensorFile(proto.SerializeAsString());
}

Scalars Elements(const NamedTensor& tensor) {
  return Decode(tensor.tensor.type, tensor.tensor.data.bytes());
}

TEST(TensorFileTest, TypedFields) {
  const struct {
    const char* text;
    DType dtype;
    Scalars elements;
  } cases[] = {
      {"data_type: 1 dims: 2 float_data: [0.5, -2]", DType::kF32, {0.5, -2.0}},
      {"data_type: 2 dims: 2 int32_data: [1, 255]", DType::kU8, {1, 255}},
      {"data_type: 3 dims: 2 int32_data: [1, -128]", DType::kI8, {1, -128}},
      {"data_type: 6 dims: 2 int32_data: [1, -70000]", DType::kI32, {1, -70000}},
      {"data_type: 7 dims: 2 int64_data: [1, -5000000000]", DType::kI64, {1, -5000000000}},
      {"data_type: 9 dims: 2 int32_data: [0, 1]", DType::kBool, {0, 1}},
      {"data_type: 10 dims: 2 int32_data: [0x3c00, 0xc000]", DType::kF16, {1.0, -2.0}},
      {"data_type: 11 dims: 2 double_data: [0.1, 3]", DType::kF64, {0.1, 3.0}},
      {"data_type: 16 dims: 2 int32_data: [0x3f80, 0xc000]", DType::kBF16, {1.0, -2.0}},
      {"data_type: 17 dims: 2 int32_data: [0x38, 0xc0]", DType::kF8E4M3, {1.0, -2.0}},
      {"data_type: 19 dims: 2 int32_data: [0x3c, 0xc0]", DType::kF8E5M2, {1.0, -2.0}},
  };
  for (const auto& c : cases) {
    const auto tensor = Parse(c.text);
    ASSERT_THAT(tensor, IsOk()) << c.text;
    EXPECT_EQ(tensor->name, "t");
    EXPECT_EQ(tensor->tensor.type, (graph::TensorType{c.dtype, {2}}));
    EXPECT_EQ(Elements(*tensor), c.elements) << c.text;
  }
}

TEST(TensorFileTest, RawBytes) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto tensor,
      Parse("data_type: 6 dims: [1, 2] raw_data: '\\001\\000\\000\\000\\377\\377\\377\\377'"));
  EXPECT_EQ(Elements(tensor), Scalars({1, -1}));
  HONE_ASSERT_OK_AND_ASSIGN(const auto flags,
                            Parse("data_type: 9 dims: 3 raw_data: '\\000\\001\\377'"));
  EXPECT_EQ(flags.tensor.data.bytes(), std::string("\0\1\1", 3));  // true is 1
  HONE_ASSERT_OK_AND_ASSIGN(const auto scalar, Parse("data_type: 1 float_data: 3"));
  EXPECT_TRUE(scalar.tensor.type.shape.empty());
}

TEST(TensorFileTest, TwoElementsOfFourBitsShareAByte) {
  for (const char* const bytes : {"int32_data: [0xf1, 0x08]", "raw_data: '\\361\\010'"}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto signed_elements,
                              Parse(absl::StrCat("data_type: 22 dims: 3 ", bytes)));
    EXPECT_EQ(Elements(signed_elements), Scalars({1, -1, -8})) << bytes;
    HONE_ASSERT_OK_AND_ASSIGN(const auto elements,
                              Parse(absl::StrCat("data_type: 21 dims: [1, 3] ", bytes)));
    EXPECT_EQ(Elements(elements), Scalars({1, 15, 8})) << bytes;
  }
}

TEST(TensorFileTest, Errors) {
  GoldenOfTest golden;
  for (const char* const text :
       {"data_type: 1 dims: 3 float_data: [1, 2]", "data_type: 1 dims: 1 raw_data: 'abc'",
        "data_type: 1 dims: 1099511627776", "data_type: 1 dims: [4294967296, 4294967296, 4]",
        "data_type: 1 dims: 1048576", "data_type: 1 dims: -1",
        "data_type: 1 dims: [1, 1, 1, 1, 1, 1, 1, 1, 1] float_data: 1", "data_type: 0 dims: 1",
        "data_type: 99 dims: 1", "data_type: 4 dims: 1", "data_type: 8 dims: 1",
        "data_type: 13 dims: 1", "data_type: 14 dims: 1",
        "data_type: 22 dims: 3 int32_data: [1, 2, 3]", "data_type: 23 dims: 1",
        "data_type: 1 dims: 1 segment { begin: 0 end: 1 }",
        "data_type: 1 dims: 1 data_location: EXTERNAL external_data { key: 'location' value: 'w' "
        "}"}) {
    golden.Add(text, Parse(text).status().ToString());
  }
  golden.Add(ParseTensorFile("\x0a\xff").status().message());
}

}  // namespace
}  // namespace hone::onnx

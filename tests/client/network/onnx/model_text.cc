#include "tests/client/network/onnx/model_text.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone::onnx {

::onnx::ModelProto ModelOf(const std::string& graph, int opset) {
  ::onnx::ModelProto model;
  const std::string text = absl::StrCat("ir_version: 8 opset_import { version: ", opset,
                                        " } graph { name: 'g' ", graph, " }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

std::string BytesOf(const std::string& graph, int opset) {
  return ModelOf(graph, opset).SerializeAsString();
}

std::string Input(const std::string& name, int type, const std::string& shape) {
  std::string dimensions;
  for (const absl::string_view extent : absl::StrSplit(shape, ", ", absl::SkipEmpty())) {
    int64_t number;
    absl::StrAppend(&dimensions, "dim { ",
                    absl::SimpleAtoi(extent, &number) ? absl::StrCat("dim_value: ", number)
                    : extent == "?"                   ? ""
                                                      : absl::StrCat("dim_param: '", extent, "'"),
                    " } ");
  }
  return absl::StrCat("input { name: '", name, "' type { tensor_type { elem_type: ", type,
                      " shape { ", dimensions, "} } } } ");
}

std::string Output(const std::string& name) {
  return absl::StrCat("output { name: '", name, "' } ");
}

std::string Initializer(const std::string& name, int type, const std::string& shape,
                        const std::string& elements) {
  return absl::StrCat("initializer { name: '", name, "' data_type: ", type, " dims: [", shape, "] ",
                      elements, " } ");
}

std::string NodeText(const std::string& op, const std::string& inputs, const std::string& outputs,
                     const std::string& attributes) {
  const std::vector<std::string> names = absl::StrSplit(outputs, ' ');
  std::string text = absl::StrCat("node { op_type: '", op, "' name: 'n_", names[0], "' ");
  for (const absl::string_view name : absl::StrSplit(inputs, ' ', absl::SkipEmpty())) {
    absl::StrAppend(&text, "input: '", name == "_" ? "" : name, "' ");
  }
  for (const std::string& name : names) {
    absl::StrAppend(&text, "output: '", name == "_" ? "" : name, "' ");
  }
  return absl::StrCat(text, attributes, " } ");
}

namespace {

std::string AttributeText(const std::string& name, const std::string& type,
                          const std::string& value) {
  return absl::StrCat("attribute { name: '", name, "' type: ", type, " ", value, " } ");
}

}  // namespace

std::string Ints(const std::string& name, const std::string& list) {
  return AttributeText(name, "INTS", absl::StrCat("ints: [", list, "]"));
}

std::string Int(const std::string& name, int64_t value) {
  return AttributeText(name, "INT", absl::StrCat("i: ", value));
}

std::string Float(const std::string& name, double value) {
  return AttributeText(name, "FLOAT", absl::StrCat("f: ", value));
}

std::string Floats(const std::string& name, const std::string& list) {
  return AttributeText(name, "FLOATS", absl::StrCat("floats: [", list, "]"));
}

std::string String(const std::string& name, const std::string& value) {
  return AttributeText(name, "STRING", absl::StrCat("s: '", value, "'"));
}

}  // namespace hone::onnx

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/external_files.h"
#include "client/network/onnx/import.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/file.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

namespace fs = std::filesystem;

// A folder with a model's folder "m", in which "w" has 8 bytes, and a file "secret" outside of it.
class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    fs::create_directories(root_ / "m/sub");
    EXPECT_THAT(WriteFileAtomically(root_ / "m/w", "01234567"), IsOk());
    EXPECT_THAT(WriteFileAtomically(root_ / "secret", "01234567"), IsOk());
  }

  absl::StatusOr<graph::ConstantData> Map(const ExternalRange& range) {
    ExternalData files(root_ / "m");
    return files.Map(range);  // the data outlives the files
  }

  const TemporaryFolder root_;
};

TEST_F(ExternalDataTest, MapsRanges) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto data, Map({"w", 2, 3}));
  EXPECT_EQ(data.bytes(), "234");
  EXPECT_THAT(Map({"w", 8, 0}), IsOk());
  fs::create_symlink("../w", root_ / "m/sub/link");
  EXPECT_THAT(Map({"sub/link", 0, 8}), IsOk());
}

TEST_F(ExternalDataTest, ReadsOnlyInsideTheFolder) {
  GoldenOfTest golden;
  fs::create_symlink("../secret", root_ / "m/link");
  fs::create_directory_symlink("..", root_ / "m/up");
  for (const char* location :
       {"../secret", "sub/../../secret", "/etc/passwd", "", "link", "up/secret"}) {
    golden.Add(Map({location, 0, 1}).status().ToString());
  }
}

TEST_F(ExternalDataTest, Errors) {
  GoldenOfTest golden;
  golden.Name(root_.path(), "DIR");
  ASSERT_EQ(::mkfifo((root_ / "m/pipe").c_str(), 0600), 0);
  for (const ExternalRange& range :
       {ExternalRange{"w", 0, 9}, ExternalRange{"w", 8, 1}, ExternalRange{"w", -1, 1},
        ExternalRange{"w", 9, 0}, ExternalRange{"w", INT64_MAX, 8}, ExternalRange{"absent", 0, 1},
        ExternalRange{"sub", 0, 1}, ExternalRange{"pipe", 0, 1}}) {
    golden.Add(Map(range).status().ToString());
  }
}

// f32[2] in a file of this name.
std::string InFile(const std::string& name) {
  return Initializer(
      name, 1, "2",
      absl::StrCat("data_location: EXTERNAL external_data { key: 'location' value: '", name,
                   "' }"));
}

// A model without the files of tensors that nothing reads is as good as one with them.
TEST_F(ExternalDataTest, OnlyFilesThatTheOutputsNeedAreOpened) {
  const auto branch = [](const std::string& name, const std::string& graph) {
    return absl::StrCat("attribute { name: '", name, "' type: GRAPH g { name: 'b' ", graph,
                        Output("r"), " } } ");
  };
  const std::string text = Input("x", 1, "2") + InFile("w") + InFile("unread") + InFile("dead") +
                           InFile("outer") + Initializer("c", 9, "", "int32_data: 1") +
                           NodeText("Add", "dead dead", "nowhere") + NodeText("Add", "x w", "s") +
                           NodeText("If", "c", "y",
                                    branch("then_branch", InFile("inner") + InFile("unread_inner") +
                                                              NodeText("Add", "outer inner", "r")) +
                                        branch("else_branch", NodeText("Neg", "s", "r"))) +
                           Output("y");
  const std::string model = root_ / "m/net.onnx";
  ASSERT_THAT(WriteFileAtomically(model, BytesOf(text)), IsOk());
  for (const char* const needed : {"inner", "outer"}) {
    const absl::Status missing = DigestOfModel(model).status();
    EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr(needed)));
    EXPECT_THAT(ImportOnnx(model), StatusIs(absl::StatusCode::kNotFound));
    ASSERT_THAT(WriteFileAtomically(root_ / (std::string("m/") + needed), "01234567"), IsOk());
  }
  EXPECT_THAT(ImportOnnx(model), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const Digest before, DigestOfModel(model));
  ASSERT_THAT(WriteFileAtomically(root_ / "m/unread", "01234567"), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const Digest same, DigestOfModel(model));
  EXPECT_EQ(before.ToHex(), same.ToHex());
  ASSERT_THAT(WriteFileAtomically(root_ / "m/inner", "76543210"), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const Digest changed, DigestOfModel(model));
  EXPECT_NE(before.ToHex(), changed.ToHex());
}

// f0 calls f1, which calls f2, and so on; the last one is the identity.
::onnx::ModelProto ChainOfFunctions(int count) {
  ::onnx::ModelProto model;
  const auto call = [](::onnx::NodeProto& node, const std::string& of) {
    node.set_op_type(of);
    if (of != "Identity") node.set_domain("d");
    node.add_input("x");
    node.add_output("y");
  };
  for (int i = 0; i < count; ++i) {
    ::onnx::FunctionProto& function = *model.add_functions();
    function.set_domain("d");
    function.set_name(absl::StrCat("f", i));
    function.add_input("x");
    function.add_output("y");
    call(*function.add_node(), i + 1 < count ? absl::StrCat("f", i + 1) : "Identity");
  }
  model.mutable_graph()->add_input()->set_name("x");
  model.mutable_graph()->add_output()->set_name("y");
  call(*model.mutable_graph()->add_node(), "f0");
  return model;
}

// The recursion ends, also in branches that an import does not enter.
TEST(ExternalFilesTest, DeepChainsOfFunctionsAreRefused) {
  EXPECT_THAT(ExternalFilesOf(ChainOfFunctions(40)), IsOk());
  EXPECT_THAT(
      ExternalFilesOf(ChainOfFunctions(20000)),
      StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("more than 64 deep")));
}

}  // namespace
}  // namespace hone::onnx

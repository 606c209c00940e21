// One exported network for several sizes of its open dimension, on each kind of device.

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/network/export/export.h"
#include "client/network/graph/pass/passes.h"
#include "client/network/graph/samples.h"
#include "client/network/onnx/import.h"
#include "client/network/plan/plan.h"
#include "client/network/runtime/hone_network.h"
#include "client/network/runtime/plan_reader.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/network_devices.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/client/network/test_network.h"
#include "tests/integration/process.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::network {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<graph::Graph> OfSize(const std::string& text, int64_t size) {
  return onnx::ImportOnnxBytes(onnx::BytesOf(text), "", {.shapes = {{"N", {size}}}});
}

// Small fractions that depend on the position.
std::string SizedElements(const graph::TensorType& type) {
  std::string bytes;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const float element = static_cast<float>((i * 5 + i / 7) % 13 - 6) / 4;
    bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
  return bytes;
}

std::vector<float> FloatsOf(absl::string_view bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

// The exported library, which is named "net".
class SizedLibrary {
 public:
  explicit SizedLibrary(const std::string& folder)
      : handle_(dlopen((folder + "/libnet.so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
    const std::string weights = folder + "/net.weights";
    EXPECT_EQ(Call<decltype(hone_network_open)>("open")(weights.c_str(), &network), 0)
        << Call<decltype(hone_network_error)>("error")();
    EXPECT_EQ(
        Call<decltype(hone_network_new_instance)>("new_instance")(network, nullptr, &instance), 0);
  }
  ~SizedLibrary() {
    Call<decltype(hone_network_free_instance)>("free_instance")(instance);
    Call<decltype(hone_network_close)>("close")(network);
    dlclose(handle_);
  }

  template <typename Function>
  Function* Call(const std::string& name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, ("net_" + name).c_str()));
  }
  std::string Error() const { return Call<decltype(hone_network_error)>("error")(); }

  // Runs a value. `shift`: of the buffers, which are then not aligned.
  int Run(int64_t value, const std::vector<std::string>& inputs, std::vector<std::string>& outputs,
          size_t shift = 0) const {
    std::vector<std::vector<char>> buffers;
    const auto aligned = [&](size_t bytes) {
      buffers.emplace_back(bytes + 128, '\x7f');  // an index beside a tensor is out of range
      char* const begin = buffers.back().data();
      return begin + (64 - reinterpret_cast<uintptr_t>(begin) % 64) % 64 + shift;
    };
    std::vector<const void*> in;
    for (const std::string& input : inputs) {
      char* const at = aligned(input.size());
      std::memcpy(at, input.data(), input.size());
      in.push_back(at);
    }
    std::vector<void*> out;
    for (const std::string& output : outputs) out.push_back(aligned(output.size()));
    const int status =
        Call<decltype(hone_network_run_size)>("run_size")(instance, value, in.data(), out.data());
    for (size_t o = 0; o < outputs.size(); ++o) {
      std::memcpy(outputs[o].data(), out[o], outputs[o].size());
    }
    return status;
  }

  hone_network* network = nullptr;
  hone_network_instance* instance = nullptr;

 private:
  void* const handle_;
};

class SizesExportTest : public ::testing::Test {
 protected:
  // Compiles the network for these sizes. Those of `pads` are padded to, and the inputs `masks`
  // hide the padding.
  void Prepare(const std::string& text, const std::vector<int64_t>& sizes, bool pads,
               bool pack = false, const std::vector<graph::InputMask>& masks = {}) {
    for (const int64_t size : sizes) {
      auto graph = OfSize(text, size);
      ASSERT_THAT(graph, IsOk());
      ASSERT_THAT(graph::Optimize(*graph), IsOk());
      networks_.push_back(Compile(*std::move(graph), {.pack = pack, .target = target_}));
    }
    for (size_t k = 0; k < sizes.size(); ++k) {
      sizes_.push_back({.value = sizes[k],
                        .graph = &networks_[k].graph,
                        .partition = &networks_[k].partition,
                        .kernels = networks_[k].kernels,
                        .pads = pads,
                        .masks = masks});
    }
  }

  void Export(const std::string& text, const std::vector<int64_t>& sizes, bool pads,
              bool pack = false, const std::vector<graph::InputMask>& masks = {}) {
    networks_.reserve(sizes.size());
    ASSERT_NO_FATAL_FAILURE(Prepare(text, sizes, pads, pack, masks));
    Write();
  }

  // Exports the networks of the sizes.
  void Write() {
    ASSERT_THAT(
        ExportNetwork(
            "N", sizes_,
            {.folder = folder_ / "out", .name = "net", .program_dir = integration::BinDir()}),
        IsOk());
  }

  // Compares a run with the interpreter of the network that was imported for this value.
  void ExpectRight(const SizedLibrary& library, const std::string& text, int64_t value,
                   size_t shift = 0) {
    SCOPED_TRACE(absl::StrCat("N = ", value));
    const auto graph = OfSize(text, value);
    ASSERT_THAT(graph, IsOk());
    std::vector<std::string> inputs;
    for (const graph::ValueId id : graph->inputs) {
      inputs.push_back(SizedElements(graph->value(id).type));
    }
    ExpectRight(library, *graph, value, inputs, shift);
  }
  void ExpectRight(const SizedLibrary& library, const graph::Graph& graph, int64_t value,
                   const std::vector<std::string>& inputs, size_t shift = 0) {
    const std::vector<std::string> expected = Expected(graph, inputs);
    std::vector<std::string> outputs;
    for (const std::string& each : expected) outputs.emplace_back(each.size(), '\xff');
    ASSERT_EQ(library.Run(value, inputs, outputs, shift), 0) << library.Error();
    for (size_t o = 0; o < expected.size(); ++o) {
      const std::vector<float> wanted = FloatsOf(expected[o]);
      float largest = 1;
      for (const float each : wanted) largest = std::max(largest, std::abs(each));
      EXPECT_THAT(FloatsOf(outputs[o]),
                  ::testing::Pointwise(::testing::FloatNear(1e-5f * largest), wanted));
    }
  }

  target::Target target_ = CompileOptions().target;
  TemporaryFolder folder_;
  std::vector<TestNetwork> networks_;
  std::vector<NetworkOfSize> sizes_;
};

struct SizedDevice {
  const char* name;
  absl::StatusOr<target::Target> (*target)();  // an error: it cannot be tested on this machine
};
void PrintTo(const SizedDevice& device, std::ostream* out) { *out << device.name; }

absl::StatusOr<target::Target> CpuOfPreset() { return CompileOptions().target; }

const auto kDevices =
    ::testing::Values(SizedDevice{"cpu", CpuOfPreset}, SizedDevice{"fake_cuda", FakeCudaTarget},
                      SizedDevice{"opencl", OpenClTarget});
std::string NameOf(const ::testing::TestParamInfo<SizedDevice>& info) { return info.param.name; }

// What depends on the kind of device, on each.
template <typename Base>
class OnDevice : public Base, public ::testing::WithParamInterface<SizedDevice> {
 protected:
  void SetUp() override {
    const absl::StatusOr<target::Target> target = GetParam().target();
    if (!target.ok()) GTEST_SKIP() << target.status().message();
    this->target_ = *target;
  }
};
class DeviceSizesTest : public OnDevice<SizesExportTest> {};
INSTANTIATE_TEST_SUITE_P(All, DeviceSizesTest, kDevices, NameOf);

TEST_P(DeviceSizesTest, ValuesBetweenTheSizesArePadded) {
  const std::pair<std::string, bool> models[] = {{onnx::OpenMlp(), /*pack=*/true},
                                                 {onnx::OpenConvolutions(), /*pack=*/false},
                                                 {onnx::OpenAttention(), /*pack=*/false},
                                                 {onnx::OpenCausalAttention(), /*pack=*/false}};
  for (const auto& [text, pack] : models) {
    networks_.clear();
    sizes_.clear();
    std::filesystem::remove_all(folder_ / "out");
    ASSERT_NO_FATAL_FAILURE(Export(text, {1, 5}, /*pads=*/true, pack));
    const SizedLibrary library(folder_ / "out");
    for (const size_t shift : {0, 4}) {
      for (const int64_t value : {1, 5, 2, 3, 4, 1}) ExpectRight(library, text, value, shift);
    }
  }
}

std::string BytesOfInts(const std::vector<int64_t>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(int64_t)};
}

// An encoder whose mask is an input: what is proven of it, and runs of lengths between the sizes.
class MaskedSizesTest : public SizesExportTest {
 protected:
  // What must hide if lengths below `size` are padded to it.
  static absl::StatusOr<std::vector<graph::InputMask>> MasksOf(const std::string& text,
                                                               int64_t size) {
    const auto graph = OfSize(text, size), other = OfSize(text, size - 1);
    if (!graph.ok()) return graph.status();
    if (!other.ok()) return other.status();
    const auto axes = graph::CompareSamples(*graph, size, *other, size - 1);
    if (!axes.ok()) return axes.status();
    return graph::CheckSamplesAreIndependent(*graph, size, *axes);
  }

  // Exports the encoder for lengths of 8 and 16.
  void ExportEncoder(const std::string& text) {
    const auto masks = MasksOf(text, 16);
    ASSERT_THAT(masks, IsOk());
    ASSERT_EQ(masks->size(), 1u);
    networks_.clear();
    sizes_.clear();
    std::filesystem::remove_all(folder_ / "out");
    ASSERT_NO_FATAL_FAILURE(Export(text, {8, 16}, /*pads=*/true, /*pack=*/false, *masks));
  }

  // Tokens of two samples.
  static std::string TokensOf(int64_t length) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 2 * length; ++i) ids.push_back((i * 7 + i / 3) % 10);
    return BytesOfInts(ids);
  }
  // The mask of two samples, of which the second one shows only its first positions.
  static std::string MaskOf(int64_t length, int64_t shown) {
    std::vector<int64_t> mask;
    for (int64_t i = 0; i < 2 * length; ++i) mask.push_back(i < length + shown);
    return BytesOfInts(mask);
  }
};

class DeviceMaskedSizesTest : public OnDevice<MaskedSizesTest> {};
INSTANTIATE_TEST_SUITE_P(All, DeviceMaskedSizesTest, kDevices, NameOf);

TEST_P(DeviceMaskedSizesTest, LengthsBetweenTheSizesArePadded) {
  const std::string added = absl::StrCat(
      onnx::NodeText("Cast", "mask4", "shown", onnx::Int("to", 1)),
      onnx::Initializer("one", 1, "", "float_data: 1"),
      onnx::Initializer("low", 1, "", "float_data: -10000"),
      onnx::NodeText("Sub", "one shown", "hidden"), onnx::NodeText("Mul", "hidden low", "added"),
      onnx::NodeText("Add", "scores added", "masked"));
  const std::string pooler =
      absl::StrCat(onnx::Initializer("at", 7, "", "int64_data: 0"),
                   onnx::NodeText("Gather", "y at", "p", onnx::Int("axis", 1)), onnx::Output("p"));
  for (const std::string& text :
       {onnx::OpenMaskedAttention("", 7, pooler), onnx::OpenMaskedAttention(added)}) {
    SCOPED_TRACE(text);
    ASSERT_NO_FATAL_FAILURE(ExportEncoder(text));
    const SizedLibrary library(folder_ / "out");
    for (const int64_t length : {5, 11, 8, 16, 1, 15}) {
      SCOPED_TRACE(length);
      const auto graph = OfSize(text, length);
      ASSERT_THAT(graph, IsOk());
      for (const int64_t shown : {length, (length + 1) / 2, int64_t{1}}) {
        ExpectRight(library, *graph, length, {TokensOf(length), MaskOf(length, shown)});
      }
      ExpectRight(library, *graph, length, {TokensOf(length), MaskOf(length, 1)}, /*shift=*/4);
    }
    // If hidden positions get -10000 and the padding much less, a row may hide all.
    std::vector<std::string> outputs;
    for (const graph::ValueId id : networks_[1].graph.outputs) {
      outputs.emplace_back(networks_[1].graph.value(id).type.bytes(), '\0');
    }
    EXPECT_EQ(library.Run(11, {TokensOf(11), MaskOf(11, 0)}, outputs) == HONE_NETWORK_OK,
              text == onnx::OpenMaskedAttention(added));
  }
}

TEST_F(MaskedSizesTest, ARowThatHidesAllIsRefusedIfItIsPadded) {
  const std::string text = onnx::OpenMaskedAttention();
  ASSERT_NO_FATAL_FAILURE(ExportEncoder(text));
  const SizedLibrary library(folder_ / "out");
  std::vector<std::string> outputs = {std::string(2 * 11 * 8 * sizeof(float), '\0')};
  EXPECT_EQ(library.Run(11, {TokensOf(11), MaskOf(11, 0)}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
  EXPECT_EQ(library.Error(),
            "row 1 of input 'mask' shows no position (no element is 1), which padding needs: N is "
            "11, and 8, 16 run without padding");
  // An element of 2 is not known to show.
  std::string doubled = MaskOf(11, 0);
  const int64_t two = 2;
  std::memcpy(doubled.data() + 21 * sizeof two, &two, sizeof two);
  EXPECT_EQ(library.Run(11, {TokensOf(11), doubled}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
  // Without padding, the row has the mean of all values.
  const auto graph = OfSize(text, 8);
  ASSERT_THAT(graph, IsOk());
  ExpectRight(library, *graph, 8, {TokensOf(8), MaskOf(8, 0)});
}

// A mean over the shown positions, and a causal mask beside that of the input.
TEST_F(MaskedSizesTest, MeansAndCausalMasksArePadded) {
  std::string behind;
  for (int i = 0; i < 16 * 16; ++i) absl::StrAppend(&behind, i > 0 ? ", " : "", i % 16 > i / 16);
  const std::string both = absl::StrCat(
      onnx::Initializer("behind", /*bool*/ 9, "16, 16", absl::StrCat("int32_data: [", behind, "]")),
      onnx::Initializer("from2", 7, "2", "int64_data: [0, 0]"),
      onnx::Initializer("low", 1, "", "float_data: -inf"),
      onnx::NodeText("Concat", "n n", "n2", onnx::Int("axis", 0)),
      onnx::NodeText("Slice", "behind from2 n2", "later"),
      onnx::NodeText("Cast", "mask4", "seen", onnx::Int("to", 9)),
      onnx::NodeText("Not", "later", "not_later"), onnx::NodeText("And", "not_later seen", "both"),
      onnx::NodeText("Where", "both scores low", "masked"));
  const std::string mean = absl::StrCat(
      onnx::Initializer("last", 7, "1", "int64_data: [-1]"),
      onnx::Initializer("tiny", 1, "", "float_data: 1e-9"),
      onnx::NodeText("Unsqueeze", "mask last", "mask3"), onnx::NodeText("Shape", "y", "y_shape"),
      onnx::NodeText("Expand", "mask3 y_shape", "wide_mask"),
      onnx::NodeText("Cast", "wide_mask", "wide", onnx::Int("to", 1)),
      onnx::NodeText("Mul", "y wide", "product"),
      onnx::NodeText("ReduceSum", "product first", "total", onnx::Int("keepdims", 0)),
      onnx::NodeText("ReduceSum", "wide first", "count", onnx::Int("keepdims", 0)),
      onnx::NodeText("Clip", "count tiny", "clipped"),
      onnx::NodeText("Div", "total clipped", "mean"), onnx::Output("mean"));
  for (const std::string& masked : {std::string(), both}) {
    const std::string text = onnx::OpenMaskedAttention(masked, 7, mean);
    SCOPED_TRACE(text);
    ASSERT_NO_FATAL_FAILURE(ExportEncoder(text));
    const SizedLibrary library(folder_ / "out");
    for (const int64_t length : {5, 11, 8, 1, 15}) {
      SCOPED_TRACE(length);
      const auto graph = OfSize(text, length);
      ASSERT_THAT(graph, IsOk());
      for (const int64_t shown : {length, (length + 1) / 2, int64_t{1}}) {
        ExpectRight(library, *graph, length, {TokensOf(length), MaskOf(length, shown)});
      }
    }
    // The first row of the scores sees only the first position, which must be shown.
    std::vector<std::string> outputs = {std::string(2 * 11 * 8 * sizeof(float), '\0'),
                                        std::string(2 * 8 * sizeof(float), '\0')};
    std::string late = MaskOf(11, 3);
    late[11 * sizeof(int64_t)] = 0;
    const int status = library.Run(11, {TokensOf(11), late}, outputs);
    if (masked.empty()) {
      EXPECT_EQ(status, HONE_NETWORK_OK) << library.Error();
      continue;
    }
    EXPECT_EQ(status, HONE_NETWORK_INVALID_ARGUMENT);
    EXPECT_EQ(library.Error(),
              "row 1 of input 'mask' shows no position at its start (the first element is not 1), "
              "which padding needs: N is 11, and 8, 16 run without padding");
  }
}

// A mask that only masks sums may hide all of a row.
TEST_F(MaskedSizesTest, AMaskOfASumMayHideAll) {
  const std::string text =
      absl::StrCat(onnx::Input("y", 1, "2, N, 3"), onnx::Input("mask", 7, "2, N"),
                   onnx::Initializer("last", 7, "1", "int64_data: [-1]"),
                   onnx::Initializer("first", 7, "1", "int64_data: [1]"),
                   onnx::NodeText("Unsqueeze", "mask last", "mask3"),
                   onnx::NodeText("Cast", "mask3", "wide", onnx::Int("to", 1)),
                   onnx::NodeText("Mul", "y wide", "product"),
                   onnx::NodeText("ReduceSum", "product first", "sum", onnx::Int("keepdims", 0)),
                   onnx::Output("sum"));
  ASSERT_NO_FATAL_FAILURE(ExportEncoder(text));
  const SizedLibrary library(folder_ / "out");
  const auto graph = OfSize(text, 11);
  ASSERT_THAT(graph, IsOk());
  for (const int64_t shown : {0, 3, 11}) {
    ExpectRight(library, *graph, 11,
                {SizedElements(graph->value(graph->inputs[0]).type), MaskOf(11, shown)});
  }
}

// What is added to scores may be a zero with a sign.
TEST_F(MaskedSizesTest, AnAddedMaskShowsWithZero) {
  const std::string text =
      onnx::OpenMaskedAttention(onnx::NodeText("Add", "scores mask4", "masked"), /*type=*/1);
  ASSERT_NO_FATAL_FAILURE(ExportEncoder(text));
  const SizedLibrary library(folder_ / "out");
  const auto graph = OfSize(text, 5);
  ASSERT_THAT(graph, IsOk());
  std::vector<float> mask(10, -3e38f);
  mask[3] = 0;
  mask[5] = -0.0f;
  const auto bytes = [&] {
    return std::string(reinterpret_cast<const char*>(mask.data()), mask.size() * sizeof(float));
  };
  ExpectRight(library, *graph, 5, {TokensOf(5), bytes()});
  mask[5] = -3e38f;
  mask[6] = 0.5f;
  std::vector<std::string> outputs = {std::string(2 * 5 * 8 * sizeof(float), '\0')};
  EXPECT_EQ(library.Run(5, {TokensOf(5), bytes()}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
  EXPECT_THAT(library.Error(),
              HasSubstr("row 1 of input 'mask' shows no position (no element is 0 or 1)"));
}

// Empty inputs and outputs grow with the size, too: [N, 0] and [0, N].
TEST_P(DeviceSizesTest, EmptyInputsAndOutputsArePadded) {
  const std::string text =
      absl::StrCat(onnx::Input("x", 1, "N, 6"), onnx::Input("e", 1, "N, 0"),
                   onnx::Input("f", 1, "0, N"), onnx::NodeText("Relu", "x", "y"),
                   onnx::NodeText("Relu", "f", "z"), onnx::Output("y"), onnx::Output("z"));
  ASSERT_NO_FATAL_FAILURE(Export(text, {2, 5}, /*pads=*/true));
  const SizedLibrary library(folder_ / "out");
  for (const int64_t value : {1, 2, 3, 5}) ExpectRight(library, text, value);
}

TEST_F(SizesExportTest, ValuesOutsideAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Export(onnx::OpenMlp(), {2, 3, 8}, /*pads=*/true));
  const SizedLibrary library(folder_ / "out");
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{9}, int64_t{1} << 62}) {
    std::vector<std::string> outputs(2);
    EXPECT_EQ(library.Run(value, {""}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
    EXPECT_EQ(library.Error(), absl::StrCat("N is ", value, ", but the network runs 1 to 8"));
  }
}

TEST_F(SizesExportTest, WithoutPaddingOnlyTheSizesRun) {
  const std::string text = onnx::OpenAttention();
  ASSERT_NO_FATAL_FAILURE(Export(text, {1, 2, 5}, /*pads=*/false));
  const SizedLibrary library(folder_ / "out");
  for (const int64_t value : {1, 2, 5}) ExpectRight(library, text, value);
  std::vector<std::string> outputs(1);
  EXPECT_EQ(library.Run(3, {""}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
  EXPECT_EQ(library.Error(), "N is 3, but the network runs 1 to 2, 5");
}

TEST_F(SizesExportTest, TheLibraryDescribesItsSizes) {
  ASSERT_NO_FATAL_FAILURE(Export(onnx::OpenMlp(), {2, 4}, /*pads=*/true));
  const SizedLibrary library(folder_ / "out");
  const auto* const sizes = library.Call<decltype(hone_network_sizes)>("sizes")(library.network);
  EXPECT_EQ(library.Call<decltype(hone_network_size_count)>("size_count")(library.network), 2);
  EXPECT_THAT(std::vector<int64_t>(sizes, sizes + 2), ElementsAre(2, 4));
  EXPECT_STREQ(library.Call<decltype(hone_network_size_name)>("size_name")(library.network), "N");
  const auto* const input = library.Call<decltype(hone_network_inputs)>("inputs")(library.network);
  EXPECT_EQ(input->shape[0], 4);
  EXPECT_EQ(input->open_axis, 0);
  const auto* const small =
      library.Call<decltype(hone_network_inputs_of)>("inputs_of")(library.network, 0);
  EXPECT_EQ(small->shape[0], 2);
  const auto header = ReadFile(folder_ / "out/net.h");
  ASSERT_THAT(header, IsOk());
  EXPECT_THAT(*header, HasSubstr("/* N: 1 to 2, 3 to 4; the shapes are those of 4 */"));
}

TEST_F(SizesExportTest, PythonFindsTheSizeFromTheArrays) {
  ASSERT_NO_FATAL_FAILURE(Export(onnx::OpenMlp(), {2, 4}, /*pads=*/true));
  std::vector<std::string> words = {"/usr/bin/python3", "tests/client/network/export/use_sizes.py",
                                    folder_ / "out"};
  for (const int64_t value : {1, 2, 3, 4}) {
    const auto graph = OfSize(onnx::OpenMlp(), value);
    ASSERT_THAT(graph, IsOk());
    const std::vector<std::string> inputs = {SizedElements(graph->value(graph->inputs[0]).type)};
    for (const std::string& tensor : {inputs[0], Expected(*graph, inputs)[0]}) {
      words.push_back(folder_ / absl::StrCat("tensor", words.size()));
      ASSERT_THAT(WriteFileAtomically(words.back(), tensor), IsOk());
    }
  }
  const integration::Result ran = integration::RunProgram(words);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(ran.output, "right\n");
}

TEST_F(SizesExportTest, ACxxProgramGivesTheSize) {
  ASSERT_NO_FATAL_FAILURE(Export(onnx::OpenMlp(), {1, 4}, /*pads=*/true));
  std::ofstream(folder_ / "main.cc") << R"(
#include <cstdio>
#include "net.hpp"
int main(int, char** words) {
  net_cpp::Network network(words[1]);
  net_cpp::Instance instance(network, 1);
  std::vector<float> x(3 * 6, 0.5f), y(3 * 5), h(3 * 16), all(4 * 6, 0.5f), ally(4 * 5), allh(4 * 16);
  instance.run_size(3, {x}, {y, h});
  instance.run({all}, {ally, allh});
  if (network.sizes() != std::vector<std::int64_t>{1, 4}) return 1;
  for (int i = 0; i < 15; ++i) if (y[i] != ally[i]) return 2;
  try {
    instance.run_size(2, {x}, {y, h});
    return 3;
  } catch (const net_cpp::Error& error) {
    std::puts(error.what());
  }
})";
  const std::string program = folder_ / "program";
  const integration::Result compiled = integration::RunProgram(
      {"/usr/bin/c++", "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I",
       folder_ / "out", "-o", program, folder_ / "main.cc", "-L", folder_ / "out", "-lnet",
       absl::StrCat("-Wl,-rpath,", folder_ / "out")});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const integration::Result ran = integration::RunProgram({program, folder_ / "out/net.weights"});
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(ran.output, "input x has 48 bytes, not 72\n");
}

// Sizes share equal weights, and the memory between kernels is that of the largest one.
TEST_P(DeviceSizesTest, SizesShareWeightsAndMemory) {
  for (const bool pack : {false, true}) {
    networks_.clear();
    sizes_.clear();
    networks_.reserve(3);
    ASSERT_NO_FATAL_FAILURE(Prepare(onnx::OpenMlp(), {1, 2, 8}, /*pads=*/true, pack));
    const auto joined = JoinPlans("N", sizes_);
    ASSERT_THAT(joined, IsOk());
    const auto largest = JoinPlans("N", absl::MakeConstSpan(sizes_).last(1));
    ASSERT_THAT(largest, IsOk());
    const Plan& plan = joined->planned.plan;
    EXPECT_EQ(plan.is_gpu, target_.kind != target::Kind::kCpu);
    if (!pack || plan.is_gpu) {  // a CPU's packed constants are those of each kernel
      EXPECT_EQ(plan.weights_bytes, largest->planned.plan.weights_bytes);
    }
    EXPECT_EQ(plan.arena_bytes, largest->planned.plan.arena_bytes);
    EXPECT_TRUE(largest->planned.plan.sizes.empty());
    // Twice the same size: all kernels and packed constants are shared.
    const std::vector<NetworkOfSize> equal = {sizes_[1],
                                              {.value = 3,
                                               .graph = sizes_[1].graph,
                                               .partition = sizes_[1].partition,
                                               .kernels = sizes_[1].kernels}};
    const auto once = JoinPlans("N", absl::MakeConstSpan(equal).first(1));
    const auto twice = JoinPlans("N", equal);
    ASSERT_THAT(once, IsOk());
    ASSERT_THAT(twice, IsOk());
    EXPECT_EQ(twice->kernels.size(), sizes_[1].kernels.size());
    EXPECT_EQ(twice->planned.plan.weights_bytes, once->planned.plan.weights_bytes);
    EXPECT_EQ(twice->planned.plan.pieces.size(), once->planned.plan.pieces.size());
    EXPECT_EQ(twice->planned.plan.packing.size(), once->planned.plan.packing.size());
    EXPECT_EQ(once->planned.plan.packing.empty(), !plan.is_gpu || !pack);
  }
}

// The smaller size packs its constants and has more steps; the larger one reads the same constants
// as they are.
TEST_P(DeviceSizesTest, KernelsOfTheSizesMayDiffer) {
  const std::string text = onnx::OpenMlp();
  std::vector<TestNetwork> networks;
  for (const int64_t size : {2, 5}) {
    auto graph = OfSize(text, size);
    ASSERT_THAT(graph, IsOk());
    ASSERT_THAT(graph::Optimize(*graph), IsOk());
    networks.push_back(
        Compile(*std::move(graph), {.fuse = size == 5, .pack = size == 2, .target = target_}));
  }
  ASSERT_GT(networks[0].kernels.size(), networks[1].kernels.size());
  networks_ = std::move(networks);
  for (const int k : {0, 1}) {
    sizes_.push_back({.value = k == 0 ? 2 : 5,
                      .graph = &networks_[k].graph,
                      .partition = &networks_[k].partition,
                      .kernels = networks_[k].kernels,
                      .pads = true});
  }
  ASSERT_NO_FATAL_FAILURE(Write());
  const SizedLibrary library(folder_ / "out");
  for (const int64_t value : {2, 5, 1, 4, 2}) ExpectRight(library, text, value);

  // Times are those of the steps of the largest size.
  const int steps = library.Call<decltype(hone_network_step_count)>("step_count")(library.network);
  ASSERT_EQ(steps, static_cast<int>(networks_[1].partition.steps.size()));
  std::vector<int64_t> ns(steps + 8, -1);
  alignas(64) float x[5 * 6] = {};
  alignas(64) float y[5 * 5], h[5 * 16];
  const void* const inputs[] = {x};
  void* const outputs[] = {y, h};
  ASSERT_EQ(library.Call<decltype(hone_network_profile)>("profile")(library.instance, inputs,
                                                                    outputs, ns.data()),
            HONE_NETWORK_OK)
      << library.Error();
  for (int s = 0; s < steps; ++s) EXPECT_GE(ns[s], 0) << s;
  for (size_t s = steps; s < ns.size(); ++s) EXPECT_EQ(ns[s], -1) << s;
}

// A network that is the same for both values, but whose kernels pack constants for one of them. The
// artifacts of OpenCL have no object.
TEST_P(DeviceSizesTest, KernelsOfOneWorkloadMayDiffer) {
  if (target_.kind == target::Kind::kCpu) return;  // it tells them apart by their objects
  const auto graph = OfSize(onnx::OpenMlp(), 2);
  ASSERT_THAT(graph, IsOk());
  for (const bool pack : {false, true}) {
    networks_.push_back(Compile(*graph, {.pack = pack, .target = target_}));
    for (NetworkKernel& kernel : networks_.back().kernels) kernel.object.clear();
  }
  std::vector<NetworkOfSize> sizes;
  for (const TestNetwork& network : networks_) {
    sizes.push_back({.value = static_cast<int64_t>(sizes.size()) + 2,
                     .graph = &network.graph,
                     .partition = &network.partition,
                     .kernels = network.kernels});
  }
  const auto joined = JoinPlans("N", sizes);
  ASSERT_THAT(joined, IsOk());
  const Plan& plan = joined->planned.plan;
  for (const PlanSize& size : plan.sizes) {
    int64_t packed = 0;
    for (int s = 0; s < size.steps; ++s) {
      packed += plan.kernels[plan.steps[size.first_step + s].kernel].packed_bytes;
    }
    EXPECT_EQ(packed > 0, size.value == 3) << size.value;
  }
}

// The memory of an instance is that of the largest size.
TEST_P(DeviceSizesTest, AnInstanceNeedsTheMemoryOfTheLargestSize) {
  std::vector<int64_t> bytes;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 8}, {8}}) {
    networks_.clear();
    sizes_.clear();
    std::filesystem::remove_all(folder_ / "out");
    ASSERT_NO_FATAL_FAILURE(Export(onnx::OpenMlp(), sizes, /*pads=*/sizes.size() > 1));
    const SizedLibrary library(folder_ / "out");
    bytes.push_back(
        library.Call<decltype(hone_network_instance_bytes)>("instance_bytes")(library.instance));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// Indices are those of the samples that the caller gave, and the padding repeats the last one.
TEST_P(DeviceSizesTest, IndicesAreCheckedIfTheyArePadded) {
  const std::string text =
      absl::StrCat(onnx::Input("ids", 7, "N"),
                   onnx::Initializer("table", 1, "3, 2", "float_data: [1, 2, 3, 4, 5, 6]"),
                   onnx::NodeText("Gather", "table ids", "y"), onnx::Output("y"));
  ASSERT_NO_FATAL_FAILURE(Export(text, {1, 4}, /*pads=*/true));
  const SizedLibrary library(folder_ / "out");
  const auto graph = OfSize(text, 3);
  ASSERT_THAT(graph, IsOk());
  ExpectRight(library, *graph, 3, {BytesOfInts({2, 0, 1})});
  std::vector<std::string> outputs = {std::string(3 * 2 * sizeof(float), '\0')};
  EXPECT_EQ(library.Run(3, {BytesOfInts({2, 0, 3})}, outputs), HONE_NETWORK_INVALID_ARGUMENT);
  EXPECT_THAT(library.Error(),
              HasSubstr("element 2 of 'ids' is 3, but indices must be from -3 to 2"));
}

// The runtime refuses plans whose sizes are damaged.
TEST_F(SizesExportTest, DamagedSizesAreRefused) {
  networks_.reserve(2);
  ASSERT_NO_FATAL_FAILURE(Prepare(onnx::OpenMlp(), {1, 2}, /*pads=*/true));
  const auto joined = JoinPlans("N", sizes_);
  ASSERT_THAT(joined, IsOk());
  const auto wrong = [&](const std::function<void(Plan&)>& damage) -> std::string {
    Plan plan = joined->planned.plan;
    damage(plan);
    const std::string bytes = plan.Encode();
    std::vector<uint64_t> words(bytes.size() / 8 + 1);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    HonePlan read;
    const char* const what = hone_plan_read(words.data(), bytes.size(), &read);
    return what == nullptr ? "nothing" : what;
  };
  EXPECT_EQ(wrong([](Plan&) {}), "nothing");
  EXPECT_EQ(wrong([](Plan& plan) { plan.sizes[0].value = 2; }), "has sizes that do not ascend");
  EXPECT_EQ(wrong([](Plan& plan) { plan.sizes[0].value = 0; }), "has sizes that do not ascend");
  EXPECT_EQ(wrong([](Plan& plan) { plan.sizes[1].steps += 1; }), "has a size without its steps");
  EXPECT_EQ(wrong([](Plan& plan) { plan.sizes[1].first_tensor -= 1; }),
            "has a size without its steps");
  EXPECT_EQ(wrong([](Plan& plan) { std::swap(plan.inputs[0], plan.inputs[1]); }),
            "has an unknown input or output");
  EXPECT_EQ(wrong([](Plan& plan) { plan.steps.back().tensors[0] -= plan.sizes[1].first_tensor; }),
            "has a step with a tensor of another size");
  EXPECT_EQ(wrong([](Plan& plan) { plan.sizes[1].value = 5; }),
            "pads an input or output that does not grow with the size");
  const graph::InputMask mask{.input = 0, .hides = "abcd", .shows = {"efgh"}};
  EXPECT_EQ(wrong([&](Plan& plan) { plan.sizes[1].masks = {mask}; }), "nothing");
  EXPECT_EQ(wrong([&](Plan& plan) {
              plan.sizes[1].masks = {{.input = 0, .hides = "a", .shows = {"b"}}};
            }),
            "has a mask with elements of another type");
  EXPECT_EQ(wrong([&](Plan& plan) { plan.sizes[1].masks = {{.input = 0, .hides = "abcd"}}; }),
            "has a mask that shows nothing");
}

}  // namespace
}  // namespace hone::network

// Exported networks, used by programs that know their files alone.

#include "client/network/export/export.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/network/export/export_folder.h"
#include "client/network/runtime/hone_network.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/test_network.h"
#include "tests/golden.h"
#include "tests/integration/process.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ExportTest : public ::testing::Test {
 protected:
  // Exports the network as "residual".
  absl::StatusOr<std::vector<ExportedFile>> Export(const TestNetwork& network,
                                                   const std::string& name = "residual") {
    return ExportNetwork(
        network.graph, network.partition, network.kernels,
        {.folder = folder_ / "out", .name = name, .program_dir = integration::BinDir()});
  }

  std::string File(const std::string& name) const { return folder_ / ("out/" + name); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  // Writes an input and the outputs that the interpreter computes from it.
  std::vector<std::string> WriteTensors(const graph::Graph& graph) {
    std::vector<std::string> tensors = MakeInputs(graph), paths;
    for (const std::string& output : Expected(graph, tensors)) tensors.push_back(output);
    for (const std::string& tensor : tensors) {
      paths.push_back(folder_ / absl::StrCat("tensor", paths.size()));
      EXPECT_THAT(WriteFileAtomically(paths.back(), tensor), IsOk());
    }
    return paths;
  }

  TemporaryFolder folder_;
};

TEST_F(ExportTest, ACProgramRunsIt) {
  for (const bool pack : {false, true}) {
    const TestNetwork network = Compile(Residual(), {.pack = pack});
    const auto files = Export(network);
    ASSERT_THAT(files, IsOk());
    EXPECT_THAT(Files(),
                UnorderedElementsAre("libresidual.so", "residual.weights", "residual.h",
                                     "residual.hpp", "residual.py", "residual.export.json"));
    const std::string program = folder_ / "program";
    const integration::Result compiled = integration::RunProgram(
        {"/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", folder_ / "out", "-o",
         program, "tests/client/network/export/use_network.c", "-L", folder_ / "out", "-lresidual",
         "-pthread", absl::StrCat("-Wl,-rpath,", folder_ / "out")});
    ASSERT_EQ(compiled.code, 0) << compiled.errors;
    const integration::Result ran = integration::RunProgram(
        integration::With({program, File("residual.weights")}, WriteTensors(network.graph)));
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_EQ(ran.output, "right\n");
  }
}

TEST_F(ExportTest, TheHeaderIsCxx) {
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  std::ofstream(folder_ / "main.cc")
      << "#include \"residual.h\"\nint main() { return residual_step_count(nullptr) + "
         "RESIDUAL_OUTPUT_1_ELEMENTS; }\n";
  const integration::Result compiled =
      integration::RunProgram({"/usr/bin/c++", "-std=c++11", "-pedantic", "-Wall", "-Werror",
                               "-fsyntax-only", "-I", folder_ / "out", folder_ / "main.cc"});
  EXPECT_EQ(compiled.code, 0) << compiled.errors;
}

TEST_F(ExportTest, NetworksWhoseNamesDifferInTheirCaseShareAProgram) {
  std::string program;
  for (const char* const name : {"net", "NET", "Net"}) {
    ASSERT_THAT(Export(Compile(Residual()), name), IsOk());
    absl::StrAppend(&program, "#include \"", name, ".h\"\n");
  }
  std::ofstream(folder_ / "main.c") << program
                                    << "int main(void) { return NET_INPUTS - net_INPUTS + "
                                       "Net_INPUTS - NET_OK - net_OK - Net_OK; }\n";
  const integration::Result compiled =
      integration::RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I",
                               folder_ / "out", folder_ / "main.c"});
  EXPECT_EQ(compiled.code, 0) << compiled.errors;
}

TEST_F(ExportTest, ACxxProgramRunsIt) {
  const TestNetwork network = Compile(Residual(), {.pack = true});
  ASSERT_THAT(Export(network), IsOk());
  const std::string program = folder_ / "program";
  const integration::Result compiled = integration::RunProgram(
      {"/usr/bin/c++", "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I",
       folder_ / "out", "-o", program, "tests/client/network/export/use_network.cc", "-L",
       folder_ / "out", "-lresidual", absl::StrCat("-Wl,-rpath,", folder_ / "out")});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const integration::Result ran = integration::RunProgram(
      integration::With({program, File("residual.weights")}, WriteTensors(network.graph)));
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(ran.output, "right\n");
}

TEST_F(ExportTest, PythonRunsIt) {
  const TestNetwork network = Compile(Residual(), {.pack = true});
  ASSERT_THAT(Export(network), IsOk());
  const integration::Result ran = integration::RunProgram(integration::With(
      {"/usr/bin/python3", "tests/client/network/export/use_network.py", folder_ / "out"},
      WriteTensors(network.graph)));
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(ran.output, "right\n");
}

TEST_F(ExportTest, ExportsTheFunctionsOfTheHeaderAlone) {
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  const integration::Result symbols =
      integration::RunProgram({"/usr/bin/nm", "-D", "--defined-only", File("libresidual.so")});
  ASSERT_EQ(symbols.code, 0) << symbols.errors;
  const std::string header = ReadFile(File("residual.h")).value();
  int count = 0;
  for (const absl::string_view line :
       absl::StrSplit(symbols.output, '\n', absl::SkipWhitespace())) {
    const std::string name(line.substr(line.rfind(' ') + 1));
    EXPECT_THAT(header, HasSubstr(name + "("));
    ++count;
  }
  EXPECT_EQ(count, 25);
}

TEST_F(ExportTest, NeedsTheCLibraryAlone) {
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  const integration::Result needed =
      integration::RunProgram({"/usr/bin/readelf", "-d", File("libresidual.so")});
  ASSERT_EQ(needed.code, 0) << needed.errors;
  for (const absl::string_view line : absl::StrSplit(needed.output, '\n')) {
    if (line.find("(NEEDED)") == absl::string_view::npos) continue;
    EXPECT_THAT(std::string(line),
                ::testing::AnyOf(HasSubstr("[libc.so.6]"), HasSubstr("[ld-linux")));
  }
}

TEST_F(ExportTest, EqualNetworksGiveEqualFiles) {
  std::vector<std::string> first;
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(Export(Compile(Residual(), {.pack = true})), IsOk());
    std::vector<std::string> contents;
    for (const char* file :
         {"libresidual.so", "residual.weights", "residual.h", "residual.hpp", "residual.py"}) {
      contents.push_back(ReadFile(File(file)).value());
    }
    if (round == 0) first = contents;
    EXPECT_EQ(contents, first);
  }
}

// The functions of an exported network.
struct Library {
  explicit Library(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW)) {
    EXPECT_NE(handle, nullptr) << dlerror();
  }
  ~Library() { dlclose(handle); }
  // Opens the network and closes it again. Calls `before_verify` in between.
  std::pair<hone_network_status, std::string> Open(
      const std::string& weights, bool verify_weights = false,
      const std::function<void()>& before_verify = [] {}) const {
    const auto open =
        reinterpret_cast<decltype(&hone_network_open)>(dlsym(handle, "residual_open"));
    const auto close =
        reinterpret_cast<decltype(&hone_network_close)>(dlsym(handle, "residual_close"));
    const auto error =
        reinterpret_cast<decltype(&hone_network_error)>(dlsym(handle, "residual_error"));
    const auto verify =
        reinterpret_cast<decltype(&hone_network_verify)>(dlsym(handle, "residual_verify"));
    hone_network* network = nullptr;
    hone_network_status status = open(weights.c_str(), &network);
    EXPECT_EQ(network != nullptr, status == HONE_NETWORK_OK);
    before_verify();
    if (status == HONE_NETWORK_OK && verify_weights) status = verify(network);
    close(network);
    return {status, error()};
  }
  void* const handle;
};

TEST_F(ExportTest, RefusesWeightsOfAnotherNetworkAndDamagedOnes) {
  graph::Graph other = Residual();
  other.values[1].constant = graph::ConstantData(std::string(other.values[1].type.bytes(), 'x'));
  ASSERT_THAT(Export(Compile(other)), IsOk());
  std::filesystem::rename(File("residual.weights"), File("other.weights"));
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  const Library library(File("libresidual.so"));
  const std::string good = ReadFile(File("residual.weights")).value();
  const auto open_bytes = [&](const std::string& bytes) {
    EXPECT_THAT(WriteFileAtomically(File("damaged.weights"), bytes), IsOk());
    return library.Open(File("damaged.weights"));
  };
  EXPECT_EQ(library.Open(File("residual.weights")).first, HONE_NETWORK_OK);
  const auto belongs = library.Open(File("other.weights"));
  EXPECT_EQ(belongs.first, HONE_NETWORK_BAD_FILE);
  EXPECT_THAT(belongs.second, HasSubstr("belongs to another export"));
  for (const size_t size : {size_t{0}, size_t{8}, size_t{63}, size_t{64}, good.size() - 1}) {
    EXPECT_EQ(open_bytes(good.substr(0, size)).first, HONE_NETWORK_BAD_FILE) << size;
  }
  EXPECT_THAT(open_bytes(good.substr(0, 64)).second,
              HasSubstr(absl::StrCat("has 64 bytes instead of ", good.size())));
  EXPECT_EQ(open_bytes(good + "x").first, HONE_NETWORK_BAD_FILE);
  EXPECT_THAT(open_bytes(std::string(good.size(), '\0')).second,
              HasSubstr("is not a weights file of Hone"));
  EXPECT_EQ(library.Open("/").first, HONE_NETWORK_NOT_FOUND);

  EXPECT_EQ(library.Open(File("residual.weights"), true).first, HONE_NETWORK_OK);
  for (const size_t at : {size_t{64}, good.size() / 2, good.size() - 1}) {
    std::string changed = good;
    changed[at] ^= 1;
    EXPECT_EQ(open_bytes(changed).first, HONE_NETWORK_OK) << at;
    const auto verified = library.Open(File("damaged.weights"), true);
    EXPECT_EQ(verified.first, HONE_NETWORK_BAD_FILE) << at;
    EXPECT_THAT(verified.second, HasSubstr("are not those of the export"));
  }
}

TEST_F(ExportTest, AnOpenNetworkDoesNotNeedItsFile) {
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  const Library library(File("libresidual.so"));
  const auto truncate = [&] { std::filesystem::resize_file(File("residual.weights"), 0); };
  EXPECT_EQ(library.Open(File("residual.weights"), true, truncate).first, HONE_NETWORK_OK);
}

TEST_F(ExportTest, RefusesNamesThatCannotBeFunctions) {
  const TestNetwork network = Compile(Residual());
  for (const char* name : {"", "my-net", "1st", "hone_task0", "float", "hone", "math", "new",
                           "features", "main", "copy"}) {
    EXPECT_THAT(Export(network, name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
}

TEST_F(ExportTest, ExportsOfACallHaveDistinctFiles) {
  const TemporaryFolder made;
  {
    // Both `a` and `liba` have a file liba.so: a library for Python, and the kernel.
    client::ExportFolder folder(made.path(), /*overwrite=*/true, {"shared.c"});
    for (const char* const file : {"liba.so", "shared.c"})
      ASSERT_THAT(folder.Write(file, "1"), IsOk());
    ASSERT_THAT(folder.Add({.name = "a"}, {"liba.so", "shared.c"}), IsOk());
    ASSERT_THAT(folder.Add({.name = "b"}, {"shared.c"}), IsOk());
    EXPECT_THAT(folder.Add({.name = "liba"}, {"liba.so"}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("liba.so would be a file of a and of liba")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(made.path()));
}

TEST_F(ExportTest, ReplacesOnlyExportsOfTheSameNetworkThatAreNoBetter) {
  GoldenOfTest golden;
  golden.Name(folder_.path(), "DIR");
  TestNetwork network = Compile(Residual());
  const client::ExportFacts facts = {.title = "residual.onnx",
                                     .digest = "1",
                                     .shapes = "x: f32[4, 8]",
                                     .target = "cpu",
                                     .tolerance = 0};
  ExportOptions options{.folder = folder_ / "out",
                        .name = "residual",
                        .program_dir = integration::BinDir(),
                        .facts = facts};
  const auto write = [&] {
    return ExportNetwork(network.graph, network.partition, network.kernels, options).status();
  };
  EXPECT_THAT(write(), IsOk());
  const auto measured = [&](double latency_ns) {
    for (NetworkKernel& kernel : network.kernels) kernel.latency_ns = latency_ns;
  };
  measured(5);
  EXPECT_THAT(write(), IsOk()) << "measured kernels replace drafts";
  measured(4);
  EXPECT_THAT(write(), IsOk()) << "a new best";
  const auto contents = [&] {
    std::map<std::string, std::string> all;
    for (const std::string& file : Files()) all[file] = ReadFile(File(file)).value_or("");
    return all;
  };
  const auto before = contents();
  const auto refused = [&] {
    golden.Add(write().ToString());
    EXPECT_EQ(contents(), before);
  };
  network.kernels[0].latency_ns = 0;
  refused();
  measured(4);
  options.facts.digest = "2";
  refused();
  options.facts = facts;
  options.facts.shapes = "x: f32[5, 8]";
  refused();
  options.facts = facts;
  options.facts.target = "gpu";
  refused();
  options.facts = facts;
  options.facts.tolerance = 0.5;
  refused();
  options.overwrite = true;
  EXPECT_THAT(write(), IsOk());
  options.overwrite = false;
  EXPECT_THAT(write(), IsOk()) << "the same again";

  // Files that no description of an export names.
  options.facts = facts;
  std::filesystem::remove(File("residual.export.json"));
  golden.Add(write().ToString());
}

TEST_F(ExportTest, AFailureLeavesNothing) {
  TestNetwork network = Compile(Residual());
  network.kernels[0].object.clear();
  const absl::Status missing = Export(network).status();
  EXPECT_THAT(std::string(missing.message()), HasSubstr("object file of the kernel of"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));

  const absl::Status thin =
      ExportNetwork(Residual(), network.partition, Compile(Residual()).kernels,
                    {.folder = folder_ / "out", .name = "residual", .program_dir = folder_.path()})
          .status();
  EXPECT_THAT(thin, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));

  // A file cannot be replaced: those that were before it are as they were.
  ASSERT_THAT(Export(Compile(Residual())), IsOk());
  std::filesystem::remove(File("residual.py"));
  std::filesystem::create_directories(File("residual.py/folder"));
  const std::string library = ReadFile(File("libresidual.so")).value();
  ASSERT_THAT(WriteFileAtomically(File("libresidual.so"), "old"), IsOk());
  EXPECT_FALSE(Export(Compile(Residual())).ok());
  EXPECT_EQ(ReadFile(File("libresidual.so")).value(), "old");
  EXPECT_NE(library, "old");
  EXPECT_EQ(Files().size(), 6u) << "no folder of the failed export is left";
}

}  // namespace
}  // namespace hone::network

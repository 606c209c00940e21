// The library against folders with handwritten kernels.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "client/lookup/hone_lookup.h"
#include "client/lookup/kernel_index.h"
#include "client/network/export/kernel_folder.h"
#include "common/base/file.h"
#include "common/operator/operator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::lookup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNull;

constexpr int kM = 64, kN = 48, kK = 32;  // of the handwritten kernels
constexpr char kMatmul[] = "matmul m=64 n=48 k=32";

std::string Behaviour(const std::string& behaviour) {
  return hone::ReadFile(absl::StrCat(KERNEL_DIR, "/kernel_", behaviour, ".so")).value();
}

client::FolderKernel MakeKernel(const std::string& words, const std::string& shared_object,
                                const std::vector<std::string>& features = {"avx2"}) {
  const std::vector<std::string> list = absl::StrSplit(words, ' ');
  client::FolderKernel kernel;
  kernel.names = {words};
  kernel.workload = op::BuildWorkload(list[0], absl::MakeConstSpan(list).subspan(1)).value();
  kernel.target.features = features;
  kernel.shared_object = shared_object;
  kernel.latency_ns = 1500;
  kernel.gflops = 60;
  return kernel;
}

class LookupTest : public ::testing::Test {
 protected:
  ~LookupTest() override { hone_lookup_close(lookup_); }

  std::string folder() const { return temporary_ / "kernels"; }

  void Export(const std::vector<client::FolderKernel>& kernels) {
    client::KernelFolder folder(this->folder());
    for (const client::FolderKernel& kernel : kernels) ASSERT_THAT(folder.Add(kernel), IsOk());
    ASSERT_THAT(folder.Commit(), IsOk());
  }

  hone_lookup_status Open() {
    hone_lookup_close(lookup_);
    return hone_lookup_open(folder().c_str(), &lookup_);
  }

  // Opens the folder again, and finds a kernel.
  hone_lookup_status Find(const std::string& words, double tolerance = 0) {
    EXPECT_EQ(Open(), HONE_LOOKUP_OK) << hone_lookup_error();
    return hone_lookup_find(lookup_, words.c_str(), tolerance, &kernel_);
  }

  // The only shared object of the folder.
  std::string SharedObject() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder() + "/lookup")) {
      if (entry.path().extension() == ".so") return entry.path();
    }
    return "";
  }

  TemporaryFolder temporary_;
  hone_lookup* lookup_ = nullptr;
  const hone_lookup_kernel* kernel_ = nullptr;
};

template <int kElements>
struct alignas(HONE_LOOKUP_ALIGNMENT) Matrix {
  float at[kElements];
};

// Whether the kernel multiplies matrices.
bool Multiplies(const hone_lookup_kernel& kernel) {
  static Matrix<kM * kK> a;
  static Matrix<kK * kN> b;
  static Matrix<kM * kN> c;
  for (int i = 0; i < kM * kK; ++i) a.at[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < kK * kN; ++i) b.at[i] = static_cast<float>(i % 5 - 2);
  void* const buffers[] = {a.at, b.at, c.at};
  if (hone_lookup_call(&kernel, buffers) != HONE_LOOKUP_OK) return false;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a.at[i * kK + k] * b.at[k * kN + j];
      if (c.at[i * kN + j] != sum) return false;
    }
  }
  return true;
}

TEST_F(LookupTest, FindsAKernelByEverySpellingOfItsWorkload) {
  client::FolderKernel exported = MakeKernel(kMatmul, Behaviour("good"));
  exported.names.push_back("projection");
  Export({exported});
  ASSERT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
  const hone_lookup_kernel* const first = kernel_;
  const std::string digest = exported.workload.StructuralDigest().ToHex();
  for (const std::string& words :
       {std::string("matmul k=32 n=48 m=64"), std::string("matmul m=64 n=48 k=32 dtype=f32"),
        std::string(" matmul  acc=f32 k=32 n=48 m=64"), std::string("projection"), digest}) {
    EXPECT_EQ(hone_lookup_find(lookup_, words.c_str(), 0, &kernel_), HONE_LOOKUP_OK) << words;
    EXPECT_EQ(kernel_, first) << words;
  }
  EXPECT_EQ(kernel_->workload, digest);
  EXPECT_EQ(kernel_->target, exported.target.Key());
  EXPECT_EQ(kernel_->latency_ns, 1500);
  EXPECT_EQ(hone_lookup_workspace_bytes(kernel_, 8), 0);
  ASSERT_EQ(kernel_->buffer_count, 3);
  const hone_lookup_buffer& b = kernel_->buffers[1];
  EXPECT_STREQ(b.name, "B");
  EXPECT_STREQ(b.dtype, "f32");
  EXPECT_EQ(b.bytes, kK * kN * 4);
  EXPECT_THAT(std::vector<int64_t>(b.shape, b.shape + b.rank), ElementsAre(kK, kN));
  EXPECT_EQ(b.is_output, 0);
  EXPECT_EQ(kernel_->buffers[2].is_output, 1);
  EXPECT_TRUE(Multiplies(*kernel_));

  void* const nulls[] = {nullptr, nullptr, nullptr};
  EXPECT_EQ(hone_lookup_call(kernel_, nulls), HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("not aligned to 64 bytes"));
}

// Words of one workload with a window; none if the operator has no window of several dimensions.
std::vector<std::string> SpellingsOfAWindow(const op::OperatorInfo& info) {
  std::string extents = info.name, own;
  const auto has = [&](const std::string& name) {
    return std::any_of(info.keys.begin(), info.keys.end(),
                       [&](const op::KeyInfo& key) { return key.name == name; });
  };
  for (const op::KeyInfo& key : info.keys) {
    if (key.Required() && key.name != "k") absl::StrAppend(&extents, " ", key.name, "=8");
  }
  for (const char dimension : std::string("dhw")) {
    const std::string d(1, dimension);
    if (has("k" + d)) absl::StrAppend(&own, " k", d, "=3 s", d, "=2 p", d, "=1");
  }
  if (own.empty()) return {};
  return {extents + " k=3 s=2 p=1", extents + own, extents + " k=5 s=7 p=0" + own,
          extents + " k=03 s=+2 p=1 sw=2"};
}

TEST_F(LookupTest, EqualWorkloadsOfEveryOperatorWithAWindowAreFoundByAllTheirWords) {
  int windows = 0;
  for (const op::OperatorInfo& info : op::Operators()) {
    const std::vector<std::string> spellings = SpellingsOfAWindow(info);
    if (spellings.empty()) continue;
    ++windows;
    for (const std::string& exported : spellings) {
      std::filesystem::remove_all(folder());
      const client::FolderKernel kernel = MakeKernel(exported, Behaviour("good"));
      Export({kernel});
      ASSERT_EQ(Open(), HONE_LOOKUP_OK) << hone_lookup_error();
      for (const std::string& words : spellings) {
        EXPECT_EQ(MakeKernel(words, "").workload.StructuralDigest(),
                  kernel.workload.StructuralDigest());
        EXPECT_EQ(hone_lookup_find(lookup_, words.c_str(), 0, &kernel_), HONE_LOOKUP_OK)
            << exported << ": " << hone_lookup_error();
      }
    }
  }
  EXPECT_GE(windows, 5);
}

TEST_F(LookupTest, FindsTheNextLargerSize) {
  Export({MakeKernel("matmul m=128 n=48 k=32", Behaviour("good")),
          MakeKernel(kMatmul, Behaviour("good")),
          MakeKernel("matmul m=80 n=48 k=64", Behaviour("good"))});
  ASSERT_EQ(Open(), HONE_LOOKUP_OK) << hone_lookup_error();
  const auto value_of = [&](const char* words, const char* key = "m") {
    int64_t value = 0;
    const hone_lookup_status status =
        hone_lookup_find_size(lookup_, words, key, 0, &kernel_, &value);
    return status == HONE_LOOKUP_OK ? value : -static_cast<int64_t>(status);
  };
  EXPECT_EQ(value_of("matmul m=1 n=48 k=32"), 64);
  EXPECT_TRUE(Multiplies(*kernel_));
  EXPECT_EQ(value_of("matmul k=32 n=48 m=64"), 64);
  EXPECT_EQ(value_of("matmul m=65 n=48 k=32"), 128);
  EXPECT_EQ(value_of("matmul m=65 n=48 k=33", "k"), -HONE_LOOKUP_NOT_FOUND);
  EXPECT_EQ(value_of("matmul m=129 n=48 k=32"), -HONE_LOOKUP_NOT_FOUND);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("matmul m=129 n=48 k=32, or for a larger m"));
  EXPECT_THAT(kernel_, IsNull());
  EXPECT_EQ(value_of(kMatmul, "h"), -HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_EQ(value_of("projection"), -HONE_LOOKUP_INVALID_ARGUMENT);
}

TEST_F(LookupTest, AKeyThatIsAlsoAnExtentDistinguishesWorkloads) {
  Export({MakeKernel("mlp m=8 k=16 h=32 n=16", Behaviour("good"))});
  EXPECT_EQ(Find("mlp m=8 k=16 h=32"), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(Find("mlp m=8 k=32 h=32 n=16"), HONE_LOOKUP_NOT_FOUND);
}

TEST_F(LookupTest, ManyThreadsFindOneKernel) {
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  ASSERT_EQ(Open(), HONE_LOOKUP_OK) << hone_lookup_error();
  std::vector<const hone_lookup_kernel*> found(8);
  std::vector<std::thread> threads;
  for (const hone_lookup_kernel*& kernel : found) {
    threads.emplace_back([this, &kernel] {
      hone_lookup_find(lookup_, kMatmul, 0, &kernel);
      const hone_lookup_kernel* none;
      hone_lookup_find(lookup_, "matmul m=1", 0, &none);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), 1u);
  ASSERT_NE(found[0], nullptr);
  EXPECT_TRUE(Multiplies(*found[0]));
}

TEST_F(LookupTest, AMissingKernelIsNotFound) {
  GoldenOfTest golden;
  golden.Name(folder(), "FOLDER");
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  EXPECT_EQ(Find("matmul m=64 n=48 k=33"), HONE_LOOKUP_NOT_FOUND);
  EXPECT_THAT(kernel_, IsNull());
  golden.Add(hone_lookup_error());
  EXPECT_EQ(Find("matmul m=64 n=48 k=32 dtype=f64"), HONE_LOOKUP_NOT_FOUND);
  for (const char* name : {"relu", " relu "}) {
    EXPECT_EQ(Find(name), HONE_LOOKUP_NOT_FOUND);
    golden.Add(hone_lookup_error());
  }
  EXPECT_EQ(Find(std::string(32, 'a')), HONE_LOOKUP_NOT_FOUND);
  golden.Add(hone_lookup_error());
  EXPECT_EQ(Find("matmul 64 48 32"), HONE_LOOKUP_INVALID_ARGUMENT);
  golden.Add(hone_lookup_error());
  EXPECT_EQ(hone_lookup_find(lookup_, nullptr, 0, &kernel_), HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_EQ(hone_lookup_find(nullptr, kMatmul, 0, &kernel_), HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_EQ(hone_lookup_find(lookup_, kMatmul, 0, nullptr), HONE_LOOKUP_INVALID_ARGUMENT);
  hone_lookup* none = nullptr;
  EXPECT_EQ(hone_lookup_open(nullptr, &none), HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_EQ(hone_lookup_call(nullptr, nullptr), HONE_LOOKUP_INVALID_ARGUMENT);
}

TEST_F(LookupTest, AnotherCpuIsDistinguishedFromAMissingKernel) {
  GoldenOfTest golden;
  client::FolderKernel elsewhere = MakeKernel("matmul m=1 n=1 k=1", "not even read");
  elsewhere.target.arch = "riscv64";
  const client::FolderKernel other =
      MakeKernel(kMatmul, Behaviour("other_cpu"), {"avx512f", "avx9000"});
  golden.Name(elsewhere.target.Key(), "ELSEWHERE");
  golden.Name(other.target.Key(), "OTHER");
  golden.Name("a CPU of " + other.target.arch, "a CPU of ARCH");
  Export({other, elsewhere});
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_UNSUPPORTED_CPU);
  golden.Add(hone_lookup_error());
  EXPECT_EQ(Find("matmul m=1 n=1 k=1"), HONE_LOOKUP_UNSUPPORTED_CPU);
  golden.Add(hone_lookup_error());
  // A kernel for fewer features runs.
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  ASSERT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_TRUE(Multiplies(*kernel_));
}

TEST_F(LookupTest, TheKernelForMoreFeaturesIsBetterAndThenTheFasterOne) {
  std::vector<client::FolderKernel> kernels;
  for (const double latency : {30, 10, 20}) {
    kernels.push_back(MakeKernel(kMatmul, Behaviour("good")));
    kernels.back().latency_ns = latency;
    kernels.back().target.cores = static_cast<int>(latency);
  }
  Export(kernels);
  ASSERT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(kernel_->latency_ns, 10);
  kernels[0].target.features = {"avx2", "avx512f"};
  Export(kernels);
  ASSERT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(kernel_->latency_ns, 30);
}

TEST_F(LookupTest, OnlyAKernelWithinTheToleranceIsFound) {
  client::FolderKernel loose = MakeKernel(kMatmul, Behaviour("good"));
  loose.tolerance = 0.01;
  loose.latency_ns = 1;
  Export({loose});
  EXPECT_EQ(Find(kMatmul, 0.001), HONE_LOOKUP_NOT_FOUND);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("greater tolerance"));
  EXPECT_EQ(Find(kMatmul, 0.01), HONE_LOOKUP_OK);
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  ASSERT_EQ(Find(kMatmul), HONE_LOOKUP_OK);
  EXPECT_EQ(kernel_->tolerance, 0);
  ASSERT_EQ(Find(kMatmul, 0.5), HONE_LOOKUP_OK);
  EXPECT_EQ(kernel_->tolerance, 0.01);
  EXPECT_EQ(Find(kMatmul, std::numeric_limits<double>::quiet_NaN()), HONE_LOOKUP_NOT_FOUND);
  EXPECT_THAT(kernel_, IsNull());
}

TEST_F(LookupTest, ABadFolderIsAnError) {
  GoldenOfTest golden;
  golden.Name(folder(), "FOLDER");
  EXPECT_EQ(Open(), HONE_LOOKUP_BAD_FOLDER);
  EXPECT_THAT(lookup_, IsNull());
  golden.Add(hone_lookup_error());
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  const std::string path = IndexPath(folder());
  for (const std::string& content : {std::string(), std::string("hone kernels 2\n"),
                                     std::string(1000, '\0'), hone::ReadFile(path)->substr(100)}) {
    std::ofstream(path) << content;
    EXPECT_EQ(Open(), HONE_LOOKUP_BAD_FOLDER);
    golden.Add(hone_lookup_error());
    client::KernelFolder exporter(folder());
    EXPECT_THAT(exporter.Commit(), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/proc/self/mem", path);  // reading it fails
  EXPECT_EQ(Open(), HONE_LOOKUP_BAD_FOLDER);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(Open(), HONE_LOOKUP_BAD_FOLDER);
  EXPECT_EQ(hone_lookup_open("", &lookup_), HONE_LOOKUP_INVALID_ARGUMENT);
  EXPECT_THAT(lookup_, IsNull());
  golden.Add(hone_lookup_error());
}

TEST_F(LookupTest, ARelativeFolderStaysTheSameWhenTheCurrentFolderChanges) {
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temporary_.path());
  const hone_lookup_status opened = hone_lookup_open("kernels", &lookup_);
  std::filesystem::current_path(before);
  ASSERT_EQ(opened, HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(hone_lookup_find(lookup_, kMatmul, 0, &kernel_), HONE_LOOKUP_OK) << hone_lookup_error();
}

TEST_F(LookupTest, ARelativeFolderNeedsACurrentFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string gone = temporary_ / "gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  EXPECT_EQ(hone_lookup_open("kernels", &lookup_), HONE_LOOKUP_BAD_FOLDER);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("kernels"));
  std::filesystem::current_path(before);
}

TEST_F(LookupTest, NoFunctionThrows) {
  static_assert(noexcept(hone_lookup_open(nullptr, nullptr)));
  static_assert(noexcept(hone_lookup_find(nullptr, nullptr, 0, nullptr)));
  static_assert(noexcept(hone_lookup_call(nullptr, nullptr)));
  static_assert(noexcept(hone_lookup_close(nullptr)));
  static_assert(noexcept(hone_lookup_error()));
}

TEST_F(LookupTest, ABadKernelIsAnError) {
  GoldenOfTest golden;
  Export({MakeKernel(kMatmul, Behaviour("other_abi"))});
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_BAD_KERNEL);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("the kernel's interface has version"));
  const std::string path = SharedObject();
  const std::string whole = hone::ReadFile(path).value();
  ASSERT_THAT(WriteFileAtomically(path, whole.substr(0, whole.size() / 2)), IsOk());
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_BAD_KERNEL);
  golden.Name(path, "SHARED_OBJECT");
  golden.Name(folder(), "FOLDER");
  golden.Add(hone_lookup_error());
  std::filesystem::remove(path);
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_BAD_KERNEL);
  golden.Add(hone_lookup_error());
  Export({MakeKernel("matmul m=1 n=1 k=1", "not an object")});
  EXPECT_EQ(Find("matmul m=1 n=1 k=1"), HONE_LOOKUP_BAD_KERNEL);
  EXPECT_THAT(hone_lookup_error(), HasSubstr("cannot load the kernel"));
}

TEST_F(LookupTest, ALaterExportReplacesTheKernelAndKeepsItsNames) {
  client::FolderKernel named = MakeKernel(kMatmul, Behaviour("other_cpu"));
  named.names.push_back("mine");
  Export({named, MakeKernel("matmul m=1 n=1 k=1", Behaviour("good"))});
  Export({MakeKernel(kMatmul, Behaviour("good"))});
  EXPECT_EQ(Find("mine"), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(Find("matmul m=1 n=1 k=1"), HONE_LOOKUP_OK) << hone_lookup_error();
  // A name belongs to the workload that was exported last under it.
  client::FolderKernel other = MakeKernel("matmul m=2 n=2 k=2", Behaviour("good"));
  other.names.push_back("mine");
  Export({other});
  ASSERT_EQ(Find("mine"), HONE_LOOKUP_OK) << hone_lookup_error();
  EXPECT_EQ(kernel_->workload, other.workload.StructuralDigest().ToHex());
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
}

TEST_F(LookupTest, ANameThatCannotBeFoundIsLeftOut) {
  client::FolderKernel kernel = MakeKernel(kMatmul, Behaviour("good"));
  kernel.names.push_back("matmul m=64 n=48 k= 32");
  kernel.names.push_back("");
  Export({kernel});
  EXPECT_EQ(Find(kMatmul), HONE_LOOKUP_OK) << hone_lookup_error();
}

TEST_F(LookupTest, ExportsAtTheSameTimeLoseNothing) {
  std::vector<std::thread> threads;
  for (int m = 1; m <= 8; ++m) {
    threads.emplace_back([this, m] {
      Export({MakeKernel(absl::StrCat("matmul m=", m, " n=1 k=1"), Behaviour("good"))});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int m = 1; m <= 8; ++m) {
    EXPECT_EQ(Find(absl::StrCat("matmul m=", m, " n=1 k=1")), HONE_LOOKUP_OK)
        << hone_lookup_error();
  }
}

}  // namespace
}  // namespace hone::lookup

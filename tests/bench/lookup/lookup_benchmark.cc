// The time of libhone_lookup to open a folder with 1000 kernels, to find one that is loaded, and to
// find that there is none.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/lookup/hone_lookup.h"
#include "client/network/export/kernel_folder.h"
#include "common/base/file.h"
#include "common/operator/operator.h"
#include "tests/integration/process.h"

namespace hone {
namespace {

constexpr int kKernels = 1000;

std::vector<std::string> Keys(int index) {
  return {"n=1", "h=56", "w=56", absl::StrCat("ci=", index + 1), "co=64", "k=3", "s=1", "p=1"};
}

std::string Words(int index) { return absl::StrCat("conv2d ", absl::StrJoin(Keys(index), " ")); }

// A folder that all benchmarks share. Its kernels are not run.
void Export(const std::string& folder) {
  client::KernelFolder exporter(folder);
  const std::string code = ReadFile(KERNEL_DIR "/kernel_good.so").value();
  for (int i = 0; i < kKernels; ++i) {
    client::FolderKernel kernel;
    kernel.names = {Words(i)};
    kernel.workload = op::BuildWorkload("conv2d", Keys(i)).value();
    kernel.shared_object = code;
    if (!exporter.Add(kernel).ok()) std::abort();
  }
  if (!exporter.Commit().ok()) std::abort();
}

// A folder that all benchmarks share. Its kernels are not run.
const std::string& Folder() {
  static const TemporaryFolder folder;
  static const bool exported = (Export(folder.path()), true);
  benchmark::DoNotOptimize(exported);
  return folder.path();
}

void BM_Open(benchmark::State& state) {
  for (auto _ : state) {
    hone_lookup* lookup;
    if (hone_lookup_open(Folder().c_str(), &lookup) != HONE_LOOKUP_OK) {
      state.SkipWithError(hone_lookup_error());
    }
    hone_lookup_close(lookup);
  }
}
BENCHMARK(BM_Open)->Unit(benchmark::kMicrosecond);

void BM_Find(benchmark::State& state, hone_lookup_status expected, int first) {
  hone_lookup* lookup;
  hone_lookup_open(Folder().c_str(), &lookup);
  std::vector<std::string> words;
  const hone_lookup_kernel* kernel;
  for (int i = 0; i < kKernels; ++i) {
    words.push_back(Words(first + i));
    hone_lookup_find(lookup, words.back().c_str(), 0, &kernel);  // loads it
  }
  size_t at = 0;
  for (auto _ : state) {
    if (hone_lookup_find(lookup, words[at++ % kKernels].c_str(), 0, &kernel) != expected) {
      state.SkipWithError(hone_lookup_error());
    }
  }
  hone_lookup_close(lookup);
}
BENCHMARK_CAPTURE(BM_Find, loaded, HONE_LOOKUP_OK, 0);
BENCHMARK_CAPTURE(BM_Find, missing, HONE_LOOKUP_NOT_FOUND, kKernels);

}  // namespace
}  // namespace hone

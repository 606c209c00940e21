#include <cblas.h>
#include <omp.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/target/target.h"
#include "tests/bench/compare/contender.h"

namespace hone::compare {
namespace {

class OpenBlas final : public Contender {
 public:
  OpenBlas(const OperatorMatch& match, const Buffers& buffers)
      : m_(match["m"]), n_(match["n"]), k_(match["k"]), buffers_(buffers) {}
  std::string name() const override { return "OpenBLAS"; }
  absl::Status Run() override {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, k_, 1.0f, At(0), k_, At(1), n_,
                0.0f, At(2), n_);
    return absl::OkStatus();
  }

 private:
  float* At(int index) const { return static_cast<float*>(buffers_.at(index)); }
  const int m_, n_, k_;
  const Buffers& buffers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contender>> MakeOpenBlas(const OperatorMatch& match,
                                                        const Buffers& buffers) {
  if (match.op != "matmul") return absl::UnimplementedError("OpenBLAS has only matmul");
  openblas_set_num_threads(omp_get_max_threads());
  return std::make_unique<OpenBlas>(match, buffers);
}

void ChooseOpenBlasKernel(char** argv) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const target::Target host = target::DetectHost();
  const char* kernel = host.HasFeature("avx512f") ? "SkylakeX"
                       : host.HasFeature("avx2")  ? "Haswell"
                                                  : nullptr;
  if (kernel == nullptr) return;
  setenv("OPENBLAS_CORETYPE", kernel, 1);
  execv("/proc/self/exe", argv);
}

}  // namespace hone::compare

// The same walk as in cuda_test.cc on a GPU of this machine. Skipped if there is none.

#include "tests/integration/gpu_walk.h"

namespace hone::integration {
namespace {

class CudaGpuTest : public GpuWalk {
 protected:
  CudaGpuTest()
      : GpuWalk({"cuda", "nvptx64-", {"__global__", "blockIdx"}, {".cubin", ".ptx", ".cu"}}) {}
};

TEST_F(CudaGpuTest, DevicesAreListed) {
  NeedDevice();
  if (IsSkipped()) return;
  ExpectListed();
}

TEST_F(CudaGpuTest, MatmulFromTuningToItsExport) {
  NeedDevice();
  if (IsSkipped()) return;
  Walk(Matmul());
}

TEST_F(CudaGpuTest, SoftmaxFromTuningToItsExport) {
  NeedDevice();
  if (IsSkipped()) return;
  Walk(Softmax());
}

TEST_F(CudaGpuTest, SizesFromTuningToTheirExport) {
  NeedDevice();
  if (IsSkipped()) return;
  WalkOperatorSizes();
  WalkNetworkSizes();
}

}  // namespace
}  // namespace hone::integration

// An ONNX model is refused, or its graph is legal.
#include "client/network/onnx/import.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const auto graph = onnx::ImportOnnxBytes(fuzz::TextOf(data, size), /*folder=*/"");
  if (!graph.ok()) {
    fuzz::Require(!absl::IsInternal(graph.status()), "a refusal is an error of the model",
                  graph.status().ToString());
    return 0;
  }
  const absl::Status legal = graph->Verify();
  fuzz::Require(legal.ok(), "an imported graph is legal", legal.ToString());
  return 0;
}

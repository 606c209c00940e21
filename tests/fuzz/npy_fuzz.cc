// A NumPy file is refused, or its data lies within the given bytes.
#include "client/cli/npy.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view bytes = fuzz::TextOf(data, size);
  const auto array = client::ParseNpy(bytes);
  if (!array.ok()) {
    fuzz::Require(absl::IsInvalidArgument(array.status()), "a refusal is InvalidArgument",
                  array.status().ToString());
    return 0;
  }
  fuzz::Require(array->data.empty() ||
                    (array->data.data() >= bytes.data() &&
                     array->data.data() + array->data.size() <= bytes.data() + bytes.size()),
                "the data lies inside the file");
  const ir::Shape shape(array->shape.begin(), array->shape.end());
  if (client::CheckNpy(*array, ir::DType::kF32, shape).ok()) {
    fuzz::Require(static_cast<int64_t>(array->data.size()) == 4 * ir::ElementsOf(shape),
                  "an array that fits has all its elements");
  }
  return 0;
}

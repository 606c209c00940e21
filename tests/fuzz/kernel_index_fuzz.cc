// The lines of a kernel folder's index are refused with a reason, or can be printed and read back.
// The input has neither the first line nor the checksum, which would refuse nearly all mutations.
#include "client/lookup/kernel_index.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const std::string lines = "hone kernels 1\n" + std::string(fuzz::TextOf(data, size));
  lookup::Index index, again;
  std::string error;
  if (!lookup::Parse(lines + "end " + lookup::Checksum(lines) + "\n", index, error)) {
    fuzz::Require(!error.empty(), "a refusal has a reason", lines);
    return 0;
  }
  const std::string printed = lookup::Print(index);
  fuzz::Require(lookup::Parse(printed, again, error), "what is printed can be read", printed);
  fuzz::Require(lookup::Print(again) == printed, "nothing changes when it is read", printed);
  for (const lookup::Kernel& kernel : index.kernels) {
    fuzz::Require(kernel.checksum.find('/') == std::string::npos, "a file is inside the folder",
                  kernel.checksum);
    for (const std::string& name : kernel.names) lookup::Canonical(name, index.defaults);
  }
  return 0;
}

// Weights on a machine with 32-bit addresses, which QEMU emulates.
#include "client/network/runtime/weights_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::network {
namespace {

constexpr char kCompiler[] = "/usr/bin/arm-linux-gnueabihf-gcc", kEmulator[] = "/usr/bin/qemu-arm";

// Reads a file of which only the header takes space on the disk. Exits with what the runtime says.
constexpr char kReader[] = R"(#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include "client/network/runtime/plan_format.h"
#include "client/network/runtime/weights_memory.h"
int main(int count, char** words) {
  HoneWeightsHeader header = {.version = HONE_WEIGHTS_VERSION,
                              .bytes = (UINT64_C(1) << 32) - (1 << 20)};
  memcpy(header.magic, HONE_WEIGHTS_MAGIC, sizeof header.magic);
  const int file = open(words[count - 1], O_WRONLY | O_CREAT, 0600);
  if (write(file, &header, sizeof header) != sizeof header || ftruncate(file, header.bytes) != 0)
    return 100;
  const char* address;
  char message[200];
  return hone_weights_read(words[count - 1], header.bytes, header.id, &address, message,
                           sizeof message);
}
)";

TEST(WeightsMemoryTest, AFileOfAll32BitAddressesIsTooLarge) {
  for (const char* program : {kCompiler, kEmulator}) {
    if (access(program, X_OK) != 0) GTEST_SKIP() << program << " is missing";
  }
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  // The compiler for ARM does not search this machine's folder of headers.
  std::filesystem::copy_file("/usr/include/xxhash.h", temporary / "xxhash.h");
  ASSERT_THAT(WriteFileAtomically(folder + "/reader.c", kReader, Durability::kProcess), IsOk());
  const std::string compile = absl::StrCat(
      kCompiler, " -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -static -I. -I", folder, " ",
      folder, "/reader.c client/network/runtime/weights_memory.c -o ", folder, "/reader");
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  const int status =
      std::system(absl::StrCat(kEmulator, " ", folder, "/reader ", folder, "/weights").c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), HONE_NETWORK_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace hone::network

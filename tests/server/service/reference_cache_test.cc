#include <string>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"
#include "gtest/gtest.h"
#include "server/service/transfer_handler.h"
#include "tests/status.h"

namespace hone::service {
namespace {

struct Reference {
  std::string name;
  std::string bytes;
};

Reference Of(int extent) {
  const std::string workload =
      absl::StrCat("workload copy\ninput A: f32[", extent, "]\noutput B[i: ", extent, "] = A[i]\n");
  const target::Target target = *target::TargetByName("x86-avx512");
  return {
      record::ReferenceName{ir::ParseWorkload(workload)->StructuralDigest().ToHex(), target.Key()}
          .ToText(),
      record::EncodeArtifact({.shared_object = "\x7f"
                                               "ELF and more",
                              .object = "\x7f"
                                        "ELF",
                              .workload = workload,
                              .program = "kernel main\n",
                              .target = target.ToText()})};
}

TEST(ReferenceCacheTest, NumberOfNamesIsBounded) {
  ReferenceCache cache(1 << 20, /*max_names=*/3);
  for (int extent = 1; extent <= 10; ++extent) {
    const Reference reference = Of(extent);
    ASSERT_THAT(cache.Put(reference.name, reference.bytes), IsOk()) << extent;
    if (extent > 1) {
      EXPECT_THAT(cache.Get(Of(2).name), IsOk()) << "a used entry stays";
    }
  }
  int kept = 0;
  for (int extent = 1; extent <= 10; ++extent) kept += cache.Has(Of(extent).name) ? 1 : 0;
  EXPECT_EQ(kept, 3);
  EXPECT_TRUE(cache.Has(Of(10).name));
}

TEST(ReferenceCacheTest, BytesAreBounded) {
  const int64_t size = static_cast<int64_t>(Of(1).bytes.size());
  ReferenceCache cache(3 * size + size / 2);
  for (int extent = 1; extent <= 9; ++extent) {
    ASSERT_THAT(cache.Put(Of(extent).name, Of(extent).bytes), IsOk());
  }
  EXPECT_FALSE(cache.Has(Of(6).name));
  for (int extent = 7; extent <= 9; ++extent) EXPECT_TRUE(cache.Has(Of(extent).name)) << extent;
}

}  // namespace
}  // namespace hone::service

#include "tests/bench/cuda/memory_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// As nvdisasm 13 prints code for sm_80.
constexpr char kSass[] = R"(
	.section	.text.scale,"ax",@progbits
scale:
.text.scale:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0170*/                   LDG.E.128.CONSTANT R16, [R16.64] ;
        /*0180*/              @!P0 LDG.E.CONSTANT R12, [R12.64] ;
        /*0190*/                   LDGSTS.E.BYPASS.128 [R9], [R2.64] ;
        /*0220*/                   STS.128 [R21.X16], R16 ;
        /*0240*/               @P1 LDS.128 R16, [R27.X16] ;
        /*0250*/                   LDS R29, [R27+0x80] ;
        /*0300*/                   STG.E.64 [R18.64], R28 ;
.text.pack:
        /*0000*/                   STG.E.128 [R18.64], R28 ;
)";

TEST(MemoryCountsTest, CountsSass) {
  EXPECT_THAT(CountSass(kSass), ElementsAre(Pair("pack", MemoryCounts{.global_stores = {1, 1}}),
                                            Pair("scale", MemoryCounts{.global_loads = {3, 2},
                                                                       .shared_loads = {2, 1},
                                                                       .global_stores = {1, 0}})));
  EXPECT_THAT(CountSass(""), IsEmpty());
}

constexpr char kPtx[] = R"(
.visible .entry scale(
	.param .u64 scale_param_0
)
{
	ld.param.u64 	%rd1, [scale_param_0];
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd6];
	@%p1 ld.global.nc.f32 	%f5, [%rd7];
	ld.global.v2.u64 	{%rd8, %rd9}, [%rd10];
	cp.async.cg.shared.global [%r1], [%rd2], 16;
	cp.async.ca.shared.global [%r1], [%rd2], 4;
	ld.shared.v4.f32 	{%f6, %f7, %f8, %f9}, [%r4];
	ld.shared.v2.f32 	{%f6, %f7}, [%r4];
	st.global.v4.f32 	[%rd11], {%f1, %f2, %f3, %f4};
}
)";

TEST(MemoryCountsTest, CountsPtx) {
  EXPECT_THAT(CountPtx(kPtx), ElementsAre(Pair("scale", MemoryCounts{.global_loads = {5, 3},
                                                                     .shared_loads = {2, 1},
                                                                     .global_stores = {1, 1}})));
}

}  // namespace
}  // namespace hone::bench

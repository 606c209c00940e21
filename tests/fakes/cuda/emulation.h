// A second prelude for printed CUDA kernels, with which the same text compiles for the CPU.
//
// A module's text is included between this file and HONE_EMULATE lines that name its kernels
// (emulated_module.cc writes them). The threads of a block are fibers of emulated_block.cc, which
// run one at a time; `hone_host` is how a kernel calls it. So the shared object needs nothing but
// the C library.
#ifndef HONE_TESTS_FAKES_CUDA_EMULATION_H_
#define HONE_TESTS_FAKES_CUDA_EMULATION_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/fakes/cuda/emulation_abi.h"

extern "C" {
__attribute__((visibility("default"))) HoneEmulationHost* hone_host = nullptr;
}

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx (hone_host->thread)
#define blockIdx (hone_host->block)
#define __syncthreads() hone_host->barrier(hone_host, __LINE__)

static inline float __uint_as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static inline float __int_as_float(int32_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits));
}
static inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }

// The functions of the first prelude that contain PTX.

static inline float f16_to_float(uint16_t bits) {
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t number = __float_as_uint(__uint_as_float(magnitude) * 0x1p112f);
  const uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
  return __uint_as_float(number | special | static_cast<uint32_t>(bits & 0x8000) << 16);
}
static inline uint16_t f16_from_float(float x) {
  const uint32_t sign = __float_as_uint(x) >> 16 & 0x8000, magnitude = __float_as_uint(x) << 1 >> 1;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // The sum has the last bit of a denormal f16.
    const float sum = __uint_as_float(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__float_as_uint(sum) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

// The references check the types of the elements.
template <typename A, typename B, typename V, typename W>
static inline int32_t hone_dp4a(const V& a, const W& b, int32_t sum) {
  const A(&x)[4] = a.v;
  const B(&y)[4] = b.v;
  uint32_t result = static_cast<uint32_t>(sum);
  for (int i = 0; i < 4; ++i) result += static_cast<uint32_t>(int32_t{x[i]} * int32_t{y[i]});
  return static_cast<int32_t>(result);
}
template <typename V>
static inline int32_t hone_dp4a_i8(V a, V b, int32_t sum) {
  return hone_dp4a<int8_t, int8_t>(a, b, sum);
}
template <typename V>
static inline int32_t hone_dp4a_u8(V a, V b, int32_t sum) {
  return hone_dp4a<uint8_t, uint8_t>(a, b, sum);
}
template <typename V, typename W>
static inline int32_t hone_dp4a_u8i8(V a, W b, int32_t sum) {
  return hone_dp4a<uint8_t, int8_t>(a, b, sum);
}

static inline unsigned char* hone_shared_memory() {
  return static_cast<unsigned char*>(hone_host->dynamic_shared);
}

// Shuffles exchange up to 8 bytes.
template <typename T>
static inline T hone_shuffle(uint32_t mask, T value, int32_t source, int32_t line) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = hone_host->shuffle(hone_host, mask, bits, source, line);
  memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T>
static inline T hone_shuffle_xor(T value, int lanes, uint32_t mask = 0xffffffff,
                                 int line = __builtin_LINE()) {
  return hone_shuffle(mask, value, hone_host->lane ^ lanes, line);
}
// A lane without a source keeps its value.
template <typename T>
static inline T hone_shuffle_down(T value, int lanes, uint32_t mask = 0xffffffff,
                                  int line = __builtin_LINE()) {
  const int source = hone_host->lane + lanes;
  return hone_shuffle(mask, value, source < 32 ? source : hone_host->lane, line);
}

static inline void hone_copy_async_4(void* to, const void* from) {
  hone_host->copy_async(hone_host, to, from, 4);
}
static inline void hone_copy_async_8(void* to, const void* from) {
  hone_host->copy_async(hone_host, to, from, 8);
}
static inline void hone_copy_async_16(void* to, const void* from) {
  hone_host->copy_async(hone_host, to, from, 16);
}
static inline void hone_commit_group() { hone_host->commit_group(hone_host); }
template <int kPending>
static inline void hone_wait_group() {
  hone_host->wait_group(hone_host, kPending);
}

namespace hone_emulation {

template <int... kPositions>
struct Positions {};
template <int kCount, int... kPositions>
struct MakePositions : MakePositions<kCount - 1, kCount - 1, kPositions...> {};
template <int... kPositions>
struct MakePositions<0, kPositions...> {
  using Type = Positions<kPositions...>;
};

template <typename... P, int... kPositions>
static void Call(void (*kernel)(P...), void** parameters, Positions<kPositions...>) {
  kernel(*static_cast<P*>(parameters[kPositions])...);
}

template <typename... P>
constexpr int CountParameters(void (*)(P...)) {
  return sizeof...(P);
}

}  // namespace hone_emulation

// An entry of a module's table of kernels: the function and its section of shared memory.
#define HONE_EMULATE(name, function, begin, end)                                            \
  {name, hone_emulation::CountParameters(function),                                         \
   [](void** parameters) {                                                                  \
     hone_emulation::Call(                                                                  \
         function, parameters,                                                              \
         hone_emulation::MakePositions<hone_emulation::CountParameters(function)>::Type()); \
   },                                                                                       \
   begin, end}

#endif  // HONE_TESTS_FAKES_CUDA_EMULATION_H_

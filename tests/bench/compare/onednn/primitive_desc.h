#ifndef HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_DESC_H_
#define HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_DESC_H_

#include <utility>

#include "oneapi/dnnl/dnnl.hpp"

// oneDNN 2 describes an operation first and then makes a primitive descriptor of it; oneDNN 3 does
// both at once. Debian 12 has version 2, Debian 13 version 3.
namespace hone::compare {

template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc MakePrimitiveDesc(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attributes,
                                                     Arguments&&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, std::forward<Arguments>(arguments)..., attributes};
#else
  return {typename Primitive::desc(std::forward<Arguments>(arguments)...), attributes, engine};
#endif
}

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_DESC_H_

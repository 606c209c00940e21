#ifndef HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_H_
#define HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_H_

#include <unordered_map>

#include "oneapi/dnnl/dnnl.hpp"
#include "tests/bench/compare/contender.h"

namespace hone::compare {

// A oneDNN primitive on a workload's buffers. The makers below choose it; they throw dnnl::error if
// the library has none.
class OneDnn final : public Contender {
 public:
  explicit OneDnn(const Buffers& buffers)
      : buffers_(buffers), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  std::string name() const override { return "oneDNN"; }
  absl::Status Run() override;

  const dnnl::engine& engine() const { return engine_; }
  // Returns buffer `index` of the workload with this description.
  dnnl::memory Use(int index, const dnnl::memory::desc& description) const {
    return dnnl::memory(description, engine_, buffers_.at(index));
  }
  // Reorders a constant of the workload once into the layout that the primitive wants.
  dnnl::memory Pack(int index, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted);
  dnnl::memory::data_type TypeOf(int index) const;
  int outputs_begin() const { return buffers_.inputs(); }

  void Set(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments) {
    primitive_ = std::move(primitive);
    arguments_ = std::move(arguments);
  }

 private:
  const Buffers& buffers_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// The makers, one file per family.
void MakeMatmul(const OperatorMatch& match, OneDnn& contender);  // also batched, dense, quantized
void MakeConvolution(const OperatorMatch& match, OneDnn& contender);  // also depthwise and grouped
void MakeGlobalPooling(const OperatorMatch& match, OneDnn& contender);
void MakePooling(const OperatorMatch& match, OneDnn& contender);
void MakeSoftmax(const OperatorMatch& match, OneDnn& contender);
void MakeLayerNorm(const OperatorMatch& match, OneDnn& contender);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_ONEDNN_PRIMITIVE_H_

#ifndef HONE_TESTS_BENCH_COMPARE_CONTENDER_H_
#define HONE_TESTS_BENCH_COMPARE_CONTENDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "tests/bench/compare/operator_match.h"

namespace hone::compare {

// Something that computes a workload: a kernel of Hone or of a library. What may be done ahead of
// time (constants packed, code generated) is done when it is made.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  // One call on the buffers that it was made with.
  virtual absl::Status Run() = 0;
};

// The buffers of a workload, inputs first, each aligned to 64 bytes. Inputs hold seeded numbers:
// f32 in [-1, 1), integers in all of their range.
class Buffers {
 public:
  // Unimplemented: a dtype other than f32, u8, i8 and, for outputs, i32.
  static absl::StatusOr<Buffers> Make(const ir::Workload& workload, uint64_t seed);

  void* const* pointers() const { return pointers_.data(); }
  void* at(int index) const { return pointers_[index]; }
  ir::DType dtype(int index) const { return dtypes_[index]; }
  int64_t elements(int index) const { return elements_[index]; }
  int size() const { return static_cast<int>(pointers_.size()); }
  int inputs() const { return inputs_; }
  int64_t bytes() const { return bytes_; }  // of all
  // An element of an output.
  double value(int index, int64_t element) const;
  // What no kernel writes, so that elements that are left out show.
  void PoisonOutputs() const;

 private:
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<void*> pointers_;
  std::vector<int64_t> elements_;
  std::vector<ir::DType> dtypes_;
  int64_t bytes_ = 0;
  int inputs_ = 0;
};

// A kernel of Hone's, not loaded yet.
struct HoneSource {
  std::string name;
  std::string op;         // the operator with its keys, where it is known
  std::string algorithm;  // the rewrites of its trace, "winograd"; empty: none
  double tolerance = 0;   // what those need, by the formula of schedule::ToleranceNeeded
  ir::Workload workload;
  std::string shared_object;  // its bytes
};
// What `hone export` wrote into a folder: the first NAME.so in it with the workload of NAME.hone.
// NotFound: there is none.
absl::StatusOr<HoneSource> FindExported(const std::string& folder);
// A trace file with its decisions, built here for this machine and `threads` threads.
// InvalidArgument: it does not parse or is refused, with the message of whoever refused it.
absl::StatusOr<HoneSource> BuildTrace(const std::string& path, int threads);

// The kernel. Its constants are packed here. `buffers` outlives it. FailedPrecondition: it does not
// load, is of another interface, or refuses this CPU.
absl::StatusOr<std::unique_ptr<Contender>> MakeHoneKernel(const HoneSource& source,
                                                          const Buffers& buffers);

// oneDNN's primitive for the operator, images in NHWC, constant weights in its own layout;
// convolutions are direct. Unimplemented: it has none.
absl::StatusOr<std::unique_ptr<Contender>> MakeOneDnn(const OperatorMatch& match,
                                                      const Buffers& buffers);

// OpenBLAS' sgemm. Unimplemented: not a matmul.
absl::StatusOr<std::unique_ptr<Contender>> MakeOpenBlas(const OperatorMatch& match,
                                                        const Buffers& buffers);

// Multiply-adds in registers on all cores, of the width that is fastest: the peak, timed among the
// others, because shared machines change their speed by the minute.
class FmaPeak final : public Contender {
 public:
  FmaPeak();
  std::string name() const override { return "FMA peak"; }
  absl::Status Run() override;
  double flops() const { return flops_; }  // of a run

 private:
  int width_bits_ = 0;
  double flops_ = 0;
};

// Copies half as many bytes as the workload's inputs and outputs have, on all threads, so that as
// many are moved: what an operator that computes little can reach.
class Copy final : public Contender {
 public:
  explicit Copy(int64_t bytes);
  std::string name() const override { return "copy of as many bytes"; }
  absl::Status Run() override;

 private:
  int64_t half_;
  std::shared_ptr<char> from_, to_;
};

// OpenBLAS takes an old kernel on CPUs that it does not know. Its choice can be set only before it
// is loaded: returns when the environment is right, else starts this program again with the right
// one.
void ChooseOpenBlasKernel(char** argv);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_CONTENDER_H_

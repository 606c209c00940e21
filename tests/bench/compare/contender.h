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

// A kernel of Hone or of a library that computes a workload. Its constructor does everything that
// may be done ahead of time (packing constants, generating code).
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  // Runs one call on the buffers given at construction.
  virtual absl::Status Run() = 0;
};

// The buffers of a workload, inputs first, aligned to 64 bytes. Inputs hold seeded numbers: f32 in
// [-1, 1), integers over their whole range.
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
  int64_t bytes() const { return bytes_; }  // of all buffers
  // Returns an element of an output.
  double value(int index, int64_t element) const;
  // Fills outputs with a value that no kernel writes, to show missing elements.
  void PoisonOutputs() const;

 private:
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<void*> pointers_;
  std::vector<int64_t> elements_;
  std::vector<ir::DType> dtypes_;
  int64_t bytes_ = 0;
  int inputs_ = 0;
};

// A kernel of Hone, not loaded yet.
struct HoneSource {
  std::string name;
  std::string op;         // the operator with its keys, if known
  std::string algorithm;  // the trace's rewrites, e.g. "winograd"; empty: none
  double tolerance = 0;   // needed by the rewrites, see tests/common/schedule/tolerance_needed.h
  ir::Workload workload;
  std::string shared_object;  // the file's contents
};
// Finds an export of `hone export` in a folder: the first NAME.so with the workload of NAME.hone.
// NotFound: there is none.
absl::StatusOr<HoneSource> FindExported(const std::string& folder);
// Builds a trace file with its decisions for this machine and `threads` threads. InvalidArgument:
// it does not parse or is refused, with the original message.
absl::StatusOr<HoneSource> BuildTrace(const std::string& path, int threads);

// Loads the kernel and packs its constants. `buffers` must outlive it. FailedPrecondition: it does
// not load, has another interface, or does not support this CPU.
absl::StatusOr<std::unique_ptr<Contender>> MakeHoneKernel(const HoneSource& source,
                                                          const Buffers& buffers);

// Makes oneDNN's primitive for the operator: images in NHWC, constant weights in its own layout,
// direct convolutions. Unimplemented: it has none.
absl::StatusOr<std::unique_ptr<Contender>> MakeOneDnn(const OperatorMatch& match,
                                                      const Buffers& buffers);

// Makes a call of OpenBLAS' sgemm. Unimplemented: not a matmul.
absl::StatusOr<std::unique_ptr<Contender>> MakeOpenBlas(const OperatorMatch& match,
                                                        const Buffers& buffers);

// Multiply-adds in registers on all cores, at the fastest width: the peak. It is timed among the
// contenders, because shared machines change their speed by the minute.
class FmaPeak final : public Contender {
 public:
  FmaPeak();
  std::string name() const override { return "FMA peak"; }
  absl::Status Run() override;
  double flops() const { return flops_; }  // per run

 private:
  int width_bits_ = 0;
  double flops_ = 0;
};

// Copies half as many bytes as the workload's inputs and outputs have, on all threads, so the same
// number of bytes is moved. This is the limit for operators with little computation.
class Copy final : public Contender {
 public:
  explicit Copy(int64_t bytes);
  std::string name() const override { return "copy of as many bytes"; }
  absl::Status Run() override;

 private:
  int64_t half_;
  std::shared_ptr<char> from_, to_;
};

// OpenBLAS uses an old kernel on CPUs that it does not know, and its choice can be set only before
// it is loaded. Returns if the environment is right; otherwise restarts this program with the right
// one.
void ChooseOpenBlasKernel(char** argv);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_CONTENDER_H_

#ifndef HONE_WORKER_COMPILE_C_DIALECT_H_
#define HONE_WORKER_COMPILE_C_DIALECT_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"
#include "common/ir/program.h"

namespace hone::codegen {

// The language that the C printer writes. The text is C99 with the type names of OpenCL C (uchar,
// ushort, uint, ulong; long has 64 bits); a dialect says what differs. Stateless.
//
// f16, bf16 and the 8-bit floats are ushort and uchar in memory and float in expressions. bool is
// uchar in memory.
class CDialect {
 public:
  enum class Space : uint8_t { kGlobal, kShared, kPrivate };
  // Consecutive elements that are loaded or stored as a vector.
  struct VectorAccess {
    Space space;
    absl::string_view type;   // of an element
    int lanes;                // 2, 4, 8 or 16
    bool aligned;             // to the size of the vector
    absl::string_view first;  // the first element, such as "A[4 * i]"
  };
  // The statement "target = value"; if `target` is empty, `value` is the whole statement.
  struct Assignment {
    std::string target, value;
  };

  virtual ~CDialect() = default;

  // The first lines of the text.
  virtual std::string Prelude(bool has_f64) const = 0;
  // The qualifiers of functions that kernels call.
  virtual absl::string_view FunctionQualifier() const { return "static"; }
  // The definition of a function of c_prelude.cc that differs in this dialect, or of a function,
  // type or macro that only this dialect has; empty if there is none. It may use other such
  // functions, which are printed before it. Operators on vectors are called "operator+".
  virtual std::string Define(absl::string_view /*name*/) const { return ""; }
  // The name of a function of <math.h>, or "rsqrt", for floats of this type.
  virtual std::string MathFunction(absl::string_view name, ir::DType /*dtype*/) const {
    return std::string(name);
  }

  // A kernel's text up to its name. Without threads, `block` is 1 × 1 × 1.
  virtual std::string KernelHead(const std::array<int64_t, 3>& block) const = 0;
  // The qualifier of memory in this space, with a trailing blank: "__global "; empty if none.
  virtual absl::string_view Qualifier(Space space) const = 0;
  // The same in the type of a pointer to such memory.
  virtual absl::string_view PointerQualifier(Space space) const { return Qualifier(space); }
  virtual absl::string_view TypeName(ir::DType dtype) const;
  virtual std::string Alignment(int64_t bytes) const {
    return absl::StrCat(" __attribute__((aligned(", bytes, ")))");
  }
  // The qualifier of pointers that do not alias others.
  virtual absl::string_view Restrict() const { return "restrict"; }
  // The largest amount of shared memory that a kernel can declare as arrays. If it needs more, all
  // of its shared memory is one block, to which `hone_shared_memory()` points.
  virtual int64_t StaticSharedBytes() const { return std::numeric_limits<int64_t>::max(); }

  // The index of a block or thread; empty if the dialect has none.
  virtual absl::string_view ThreadIndex(ir::ThreadAxis axis) const = 0;
  // `global`: the threads also exchange data in global memory.
  virtual absl::string_view Barrier(bool global) const = 0;
  // The function (to, from) that copies 4, 8 or 16 aligned bytes from global to shared memory and
  // is done when its group was waited for. Empty if the language has none: copies are assignments.
  virtual std::string CopyAsync(int /*bytes*/) const { return ""; }
  // The statement that ends a group of copies, and the one that waits until at most `pending`
  // groups are unfinished. Empty as above.
  virtual std::string CommitCopies() const { return ""; }
  virtual std::string WaitForCopies(int /*pending*/) const { return ""; }
  // The line before a loop that is to be unrolled.
  virtual absl::string_view Unroll() const { return "#pragma unroll"; }

  // Whether the language has vectors with operators and functions that work element by element.
  virtual bool HasVectors() const { return false; }
  virtual std::string VectorType(absl::string_view type, int lanes) const {
    return absl::StrCat(type, lanes);
  }
  // A vector whose elements are all `value`.
  virtual std::string Broadcast(absl::string_view type, int lanes, absl::string_view value) const {
    return absl::StrCat("(", VectorType(type, lanes), ")(", value, ")");
  }
  // The name of a function of <math.h>, or "rsqrt", for vectors of such floats.
  virtual std::string VectorFunction(absl::string_view name, ir::DType dtype) const {
    return MathFunction(name, dtype);
  }
  // The function that computes add, sub, mul, fma, max or min of vectors of short floats, and
  // rounds its result once. If it is empty, the operation is computed in float.
  virtual std::string PackedFunction(absl::string_view /*operation*/, ir::DType /*dtype*/,
                                     int /*lanes*/) const {
    return "";
  }
  // An element of a vector in a variable; empty if the language cannot choose it at run time.
  virtual std::string Lane(absl::string_view /*vector*/, absl::string_view /*lane*/) const {
    return "";
  }
  virtual std::string Load(const VectorAccess& /*from*/) const { return ""; }
  virtual Assignment Store(const VectorAccess& /*to*/, absl::string_view /*value*/) const {
    return {};
  }

  // Whether one thread runs everything: parallel loops are printed as serial ones, and memory of a
  // thread is in the workspace.
  virtual bool OneThread() const { return false; }
};

// OpenCL C 1.2. Extensions: cl_khr_fp64 in programs with f64, and those of the functions that a
// program uses. `computes_f16`: the device has cl_khr_fp16 and rounds its results correctly.
const CDialect& OpenClDialect(bool computes_f16 = false);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_DIALECT_H_

#ifndef HONE_WORKER_BUILDER_TOOLCHAIN_H_
#define HONE_WORKER_BUILDER_TOOLCHAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"
#include "worker/builder/code_facts.h"
#include "worker/compile/backend.h"

namespace hone::builder {

// The parts of an artifact.
struct Finished {
  std::string binary;  // ELF: a shared object; for GPUs: an encoded target::GpuModule
  // Texts that the artifact keeps for people and `hone export`: for CUDA the encoded
  // target::GpuSources. Empty for OpenCL, whose binary has the source, and for CPUs, which keep the
  // object file.
  std::string sources;
  CodeFacts facts;
  double link_ms = 0;  // time of linking or compiling, without reading the facts
};

// Turns code of one format into a binary that a runner can load.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  virtual absl::string_view format() const = 0;  // of codegen::Code
  // `scratch_dir` is a folder for temporary files. InvalidArgument: the code is refused, which is a
  // bug of the back end. Other errors come from the machine.
  virtual absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                          const std::string& scratch_dir) const = 0;
  // Returns what the tools report about the code, as comment lines; "" if nothing.
  virtual std::string Remarks(const codegen::Code&, const target::Target&) const { return ""; }
};

// Returns the remarks of the toolchain for the code's format.
std::string RemarksOn(const codegen::Code& code, const target::Target& target);

// Finishes code with the toolchain of its format. Errors as in Toolchain::Finish; InvalidArgument:
// no toolchain has that format.
absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                const std::string& scratch_dir);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_TOOLCHAIN_H_

#ifndef HONE_WORKER_BUILDER_TOOLCHAIN_H_
#define HONE_WORKER_BUILDER_TOOLCHAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"
#include "worker/builder/code_facts.h"
#include "worker/codegen/backend.h"

namespace hone::builder {

// What a runner loads.
struct Finished {
  std::string binary;  // ELF: a shared object; for GPUs: an encoded target::GpuModule
  // What the artifact keeps beside it, for people and `hone export`: for NVIDIA's GPUs encoded
  // target::GpuSources. For CPUs, that is the code itself, and this is empty.
  std::string sources;
  CodeFacts facts;
  double link_ms = 0;  // without reading the facts
};

// Makes code of one format loadable.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  virtual absl::string_view format() const = 0;  // of codegen::Code
  // `scratch_dir` is a folder for temporary files. InvalidArgument: the code is refused, which is a
  // bug of the back end. Other errors come from the machine.
  virtual absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                          const std::string& scratch_dir) const = 0;
  // What the tools tell about the code beyond its text, as comments for people; "" if nothing.
  virtual std::string Remarks(const codegen::Code&, const target::Target&) const { return ""; }
};

// The remarks of the toolchain of the code's format.
std::string RemarksOn(const codegen::Code& code, const target::Target& target);

// Finishes code with the toolchain of its format. Errors as in Toolchain::Finish; InvalidArgument:
// no toolchain has that format.
absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                const std::string& scratch_dir);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_TOOLCHAIN_H_

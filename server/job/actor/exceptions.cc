#include "server/job/actor/exceptions.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// "std::length_error".
std::string TypeOf(const std::exception& thrown) {
  int failed = 0;
  char* name = abi::__cxa_demangle(typeid(thrown).name(), nullptr, nullptr, &failed);
  const std::string type = failed == 0 ? name : typeid(thrown).name();
  std::free(name);
  return type;
}

}  // namespace

absl::Status CatchExceptions(absl::FunctionRef<void()> work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::InternalError("std::bad_alloc: out of memory");
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat(TypeOf(thrown), ": ", thrown.what()));
  } catch (...) {
    return absl::InternalError("an exception of an unknown type");
  }
}

absl::Status Attempt(absl::FunctionRef<absl::Status()> work) {
  absl::Status status;
  const absl::Status threw = CatchExceptions([&] { status = work(); });
  if (threw.ok()) return status;
  spdlog::error("work for a caller failed: {}", threw.ToString());
  return threw;
}

}  // namespace hone::job

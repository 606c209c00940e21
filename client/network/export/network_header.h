#ifndef HONE_CLIENT_NETWORK_EXPORT_NETWORK_HEADER_H_
#define HONE_CLIENT_NETWORK_EXPORT_NETWORK_HEADER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/plan/plan.h"

namespace hone::network {

// The C header of an exported network: runtime/hone_network.h with `name`, a C identifier,
// in place of hone_network, and the types, shapes and sizes of its inputs and outputs.
std::string NetworkHeader(const std::string& name, const Plan& plan);

// One line for each input and output: "input 0: x, f32[1, 3, 224, 224]".
std::string NetworkSignature(const Plan& plan, absl::string_view prefix);

// The header for C++ of an exported network: runtime/hone_network.hpp for this name.
std::string CppHeader(const std::string& name);

// The Python module of an exported network: runtime/hone_network.py for this name.
// `tails`: the files with the nodes that run on the host, by size, or one of size 0.
std::string PythonModule(const std::string& name, const Plan& plan,
                         absl::Span<const std::pair<int64_t, std::string>> tails);

// The source of the threads of exported kernels, hone_threads.c: common/target/thread_pool with the
// headers that it needs.
std::string ThreadsSource();
// The object file of the same for an architecture of target::Target, with functions hone_threads
// and so on. "": this program was built without a compiler for it.
std::string ThreadsObject(const std::string& arch);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_NETWORK_HEADER_H_

#ifndef HONE_CLIENT_NETWORK_NETWORK_HEADER_H_
#define HONE_CLIENT_NETWORK_NETWORK_HEADER_H_

#include <string>

#include "client/network/plan.h"

namespace hone::network {

// The C header of an exported network: runtime/hone_network.h with `name`, a C identifier,
// in place of hone_network, and the types, shapes and sizes of its inputs and outputs.
std::string NetworkHeader(const std::string& name, const Plan& plan);

// The header for C++ of an exported network: runtime/hone_network.hpp for this name.
std::string CppHeader(const std::string& name);

// The Python module of an exported network: runtime/hone_network.py for this name.
std::string PythonModule(const std::string& name, const Plan& plan);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_NETWORK_HEADER_H_

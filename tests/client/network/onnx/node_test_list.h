#ifndef HONE_TESTS_CLIENT_NETWORK_ONNX_NODE_TEST_LIST_H_
#define HONE_TESTS_CLIENT_NETWORK_ONNX_NODE_TEST_LIST_H_

#include <string>

namespace hone::onnx {

// Why a test of the ONNX project does not pass; "" if it must pass. Tests of operators that Hone
// does not have are not listed.
std::string WhyNotSupported(const std::string& test);

// Whether the expected outputs of a test are wrong in some releases of ONNX.
bool DependsOnRelease(const std::string& test);

}  // namespace hone::onnx

#endif  // HONE_TESTS_CLIENT_NETWORK_ONNX_NODE_TEST_LIST_H_

// A C++ program around an exported network, which is named residual. Reads the input and the
// expected outputs from files.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "residual.hpp"

namespace {

std::vector<float> Read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

template <typename Call>
void MustThrow(residual_status status, const char* message, Call call) {
  try {
    call();
  } catch (const residual_cpp::Error& error) {
    if (error.status() == status && std::strstr(error.what(), message) != nullptr) return;
    throw;
  }
  throw std::runtime_error(std::string("accepted: ") + message);
}

}  // namespace

int main(int, char** argv) {
  const residual_cpp::Network network(argv[1]);
  network.verify();
  const std::vector<float> x = Read(argv[2]), expected_0 = Read(argv[3]),
                           expected_1 = Read(argv[4]);
  for (const int threads : {0, 1, 2}) {
    residual_cpp::Instance instance(network, threads);
    std::vector<float> y_0(RESIDUAL_OUTPUT_0_ELEMENTS), y_1(RESIDUAL_OUTPUT_1_ELEMENTS);
    instance.run({x}, {y_0, y_1});
    if (y_0 != expected_0 || y_1 != expected_1) return 1;

    residual_cpp::Instance moved = std::move(instance);
    moved.run({{x.data(), sizeof(float) * x.size()}}, {y_0, y_1});
    y_1.pop_back();
    MustThrow(RESIDUAL_INVALID_ARGUMENT, "bytes, not", [&] { moved.run({x}, {y_0, y_1}); });
    MustThrow(RESIDUAL_INVALID_ARGUMENT, "has 2 outputs, not 1", [&] { moved.run({x}, {y_0}); });
  }
  MustThrow(RESIDUAL_NOT_FOUND, "absent", [] { residual_cpp::Network("absent"); });
  std::puts("right");
  return 0;
}

// The network of hone_network.h for C++17: objects that free what they own, checked sizes, and
// exceptions.
//
//   hone_network_cpp::Network network("hone_network.weights");
//   hone_network_cpp::Instance instance(network);
//   std::vector<float> x(...), y(...);
//   instance.run({x}, {y});
#ifndef HONE_NETWORK_HPP_
#define HONE_NETWORK_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hone_network.h"

namespace hone_network_cpp {

// Why a call failed.
class Error : public std::runtime_error {
 public:
  Error(hone_network_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  hone_network_status status() const { return status_; }

 private:
  hone_network_status status_;
};

inline void check(hone_network_status status) {
  if (status != HONE_NETWORK_OK) throw Error(status, hone_network_error());
}

// The bytes of a contiguous container of numbers, such as std::vector, std::array and std::span.
// Byte is const for inputs.
template <typename Byte>
class Buffer {
 public:
  template <typename Container,
            typename Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            typename = std::enable_if_t<!std::is_void_v<Element>>>
  Buffer(Container& container)  // NOLINT: converts
      : data_(container.data()), bytes_(container.size() * sizeof(Element)) {
    static_assert(std::is_trivially_copyable_v<Element>, "the elements are numbers");
  }
  Buffer(Byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  Byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Byte* data_;
  std::size_t bytes_;
};
using Input = Buffer<const void>;
using Output = Buffer<void>;

// An opened network. Copies share it, and any number of threads may use it.
class Network {
 public:
  // Throws Error: see hone_network_open_on.
  explicit Network(const std::string& weights_path, int device = -1) {
    hone_network* opened = nullptr;
    check(hone_network_open_on(weights_path.c_str(), device, &opened));
    network_.reset(opened, hone_network_close);
  }
  // Reads all weights. Throws Error if they are not those of the export.
  void verify() const { check(hone_network_verify(get())); }

  // The values of the open dimension for which the network was exported; empty if there is none.
  std::vector<std::int64_t> sizes() const {
    const std::int64_t* const sizes = hone_network_sizes(get());
    return {sizes, sizes + hone_network_size_count(get())};
  }

  // Inputs and outputs are those of the largest size.
  int input_count() const { return hone_network_input_count(get()); }
  int output_count() const { return hone_network_output_count(get()); }
  const hone_network_tensor& input(int i) const { return hone_network_inputs(get())[i]; }
  const hone_network_tensor& output(int i) const { return hone_network_outputs(get())[i]; }
  const hone_network* get() const { return network_.get(); }

 private:
  std::shared_ptr<hone_network> network_;
};

// The memory for one run at a time. Keeps its network open.
class Instance {
 public:
  // Runs on this many threads; 0: as hone_network_threads(0). Throws Error.
  explicit Instance(Network network, int threads = 0)
      : network_(std::move(network)), runtime_(new HoneRuntime(hone_network_threads(threads))) {
    make(runtime_.get());
  }
  // Runs on other threads. `runtime` must outlive the instance.
  Instance(Network network, const HoneRuntime& runtime) : network_(std::move(network)) {
    make(&runtime);
  }

  // Computes the outputs. Throws Error, with INVALID_ARGUMENT if the number or size of the buffers
  // is wrong.
  void run(std::initializer_list<Input> inputs, std::initializer_list<Output> outputs) {
    take(inputs, hone_network_inputs(network_.get()), "input", inputs_, 1, 1);
    take(outputs, hone_network_outputs(network_.get()), "output", outputs_, 1, 1);
    check(hone_network_run(instance_.get(), inputs_.data(), outputs_.data()));
  }

  // The same for this value of the open dimension.
  void run_size(std::int64_t value, std::initializer_list<Input> inputs,
                std::initializer_list<Output> outputs) {
    std::int32_t number = 0;
    check(hone_network_find_size(network_.get(), value, &number));
    const std::int64_t size = hone_network_sizes(network_.get())[number];
    take(inputs, hone_network_inputs_of(network_.get(), number), "input", inputs_, value, size);
    take(outputs, hone_network_outputs_of(network_.get(), number), "output", outputs_, value,
         size);
    check(hone_network_run_size(instance_.get(), value, inputs_.data(), outputs_.data()));
  }

  const Network& network() const { return network_; }

 private:
  struct Free {
    void operator()(hone_network_instance* instance) const { hone_network_free_instance(instance); }
  };

  void make(const HoneRuntime* runtime) {
    hone_network_instance* made = nullptr;
    check(hone_network_new_instance(network_.get(), runtime, &made));
    instance_.reset(made);
    inputs_.resize(network_.input_count());
    outputs_.resize(network_.output_count());
  }

  template <typename Byte>
  static void take(std::initializer_list<Buffer<Byte>> buffers, const hone_network_tensor* tensors,
                   const char* kind, std::vector<Byte*>& addresses, std::int64_t value,
                   std::int64_t size) {
    const auto refuse = [](const std::string& message) {
      throw Error(HONE_NETWORK_INVALID_ARGUMENT, message);
    };
    if (buffers.size() != addresses.size()) {
      refuse("the network has " + std::to_string(addresses.size()) + " " + kind + "s, not " +
             std::to_string(buffers.size()));
    }
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const Buffer<Byte>& buffer = buffers.begin()[i];
      const std::int64_t bytes =
          tensors[i].open_axis < 0 ? tensors[i].bytes : tensors[i].bytes / size * value;
      if (buffer.bytes() != static_cast<std::size_t>(bytes)) {
        refuse(std::string(kind) + " " + tensors[i].name + " has " + std::to_string(bytes) +
               " bytes, not " + std::to_string(buffer.bytes()));
      }
      addresses[i] = buffer.data();
    }
  }

  Network network_;
  std::unique_ptr<HoneRuntime> runtime_;  // null if the caller owns it
  std::unique_ptr<hone_network_instance, Free> instance_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace hone_network_cpp

#endif  // HONE_NETWORK_HPP_

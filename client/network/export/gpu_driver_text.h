#ifndef HONE_CLIENT_NETWORK_EXPORT_GPU_DRIVER_TEXT_H_
#define HONE_CLIENT_NETWORK_EXPORT_GPU_DRIVER_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

// C code of exported host programs for GPUs, which need no headers of OpenCL or CUDA and open the
// driver at run time.
namespace hone::client {

// Headers and functions that hide the driver: the types Memory, Module and Kernel; open_device,
// make_buffer, write_buffer, read_buffer, load_module, make_kernel, launch and finish; and
// read_file, write_file and seconds. `parts`: also make_part, copy_buffer and free_buffer. A
// program must use all of them, or compilers warn. `name` is that of the export, for messages.
std::string GpuDriverText(target::Kind kind, absl::string_view name, bool parts);

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_GPU_DRIVER_TEXT_H_

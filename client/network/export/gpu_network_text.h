#ifndef HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_TEXT_H_
#define HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_TEXT_H_

// The C code of exported networks for GPUs. @NAME@ is the name of the network, and @PREFIX@ that of
// its macros.
namespace hone::network {

// The types of the tables in NAME.h.
inline constexpr char kGpuNetworkTypes[] = R"c(#ifndef HONE_GPU_NETWORK
#define HONE_GPU_NETWORK
/* An allocation. If weights_at is not -1, its content is in the weights file, from there on. */
typedef struct {
  int64_t bytes, weights_at;
  int only_for_packing; /* not needed once the constants are packed */
} HoneGpuBuffer;
/* A part of an allocation. */
typedef struct {
  int buffer;
  int64_t offset, bytes;
} HoneGpuPart;
/* A launch of grid[d] blocks (work groups) of block[d] threads (work items) in each dimension. Its
 * parameters are parts, or null pointers (-1). If the module is -1, a copy of the first parameter
 * to the second one. */
typedef struct {
  int module;
  const char* kernel;
  size_t grid[3], block[3], shared_bytes;
  int first_parameter, parameters;
} HoneGpuCommand;
#endif

)c";

// NAME_host.c after the functions of client::GpuDriverText. @ID@ is the id of the weights file.
inline constexpr char kGpuNetworkHost[] = R"c(
static char* join(const char* folder, const char* file) {
  const size_t bytes = strlen(folder) + strlen(file) + 2;
  char* path = malloc(bytes);
  if (path == NULL) fail("out of memory", 0);
  snprintf(path, bytes, "%s/%s", folder, file);
  return path;
}

/* The header of the weights file has its magic, the version, the size and the id. */
static char* read_weights(const char* folder) {
  static const unsigned char id[] = {@ID@};
  char* path = join(folder, "@NAME@.weights");
  char* weights = read_file(path, @PREFIX@_WEIGHTS_BYTES);
  if (memcmp(weights, "HONEWGTS", 8) != 0 || memcmp(weights + 24, id, sizeof id) != 0) {
    fail("@NAME@.weights belongs to another network", 0);
  }
  free(path);
  return weights;
}

static void run(const Kernel* kernels, const Memory* parts, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const HoneGpuCommand* command = &@NAME@_commands[i];
    const int* parameters = &@NAME@_parameters[command->first_parameter];
    if (command->module < 0) {
      copy_buffer(parts[parameters[0]], parts[parameters[1]], @NAME@_parts[parameters[0]].bytes);
    } else {
      launch(&kernels[i], command->grid, command->block, command->kernel);
    }
  }
  finish();
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : ".";
  const int files = argc > 2 ? argc - 2 : 0;
  if (files != 0 && files != @PREFIX@_INPUTS + @PREFIX@_OUTPUTS) {
    fprintf(stderr, "usage: %s FOLDER [@FILES@]\n", argv[0]);
    return 2;
  }
  const char* name = open_device();
  char* weights = read_weights(folder);
  static Memory buffers[@PREFIX@_BUFFERS], parts[@PREFIX@_PARTS];
  for (int b = 0; b < @PREFIX@_BUFFERS; ++b) {
    const HoneGpuBuffer* buffer = &@NAME@_buffers[b];
    buffers[b] = make_buffer(buffer->bytes);
    if (buffer->weights_at >= 0) write_buffer(buffers[b], buffer->bytes, weights + buffer->weights_at);
  }
  free(weights);
  for (int p = 0; p < @PREFIX@_PARTS; ++p) {
    const HoneGpuPart* part = &@NAME@_parts[p];
    const int whole = part->bytes == @NAME@_buffers[part->buffer].bytes;
    parts[p] = whole ? buffers[part->buffer] : make_part(buffers[part->buffer], part->offset, part->bytes);
  }
  static Module modules[@PREFIX@_MODULES];
  for (int m = 0; m < @PREFIX@_MODULES; ++m) {
    char* path = join(folder, @NAME@_modules[m]);
    char* code = read_file(path, -1);
    modules[m] = load_module(code);
    free(code);
    free(path);
  }
  static Kernel kernels[@PREFIX@_COMMANDS];
  for (int i = 0; i < @PREFIX@_COMMANDS; ++i) {
    const HoneGpuCommand* command = &@NAME@_commands[i];
    if (command->module < 0) continue;
    Memory parameters[@PREFIX@_MOST_PARAMETERS];
    for (int p = 0; p < command->parameters; ++p) {
      const int part = @NAME@_parameters[command->first_parameter + p];
      parameters[p] = part < 0 ? (Memory)0 : parts[part];
    }
    kernels[i] = make_kernel(modules[command->module], command->kernel, command->shared_bytes,
                             (unsigned)command->parameters, parameters);
  }
  run(kernels, parts, 0, @PREFIX@_PACKING);
  for (int b = 0; b < @PREFIX@_BUFFERS; ++b) {
    if (@NAME@_buffers[b].only_for_packing) free_buffer(buffers[b]);
  }

  for (int i = 0; i < @PREFIX@_INPUTS; ++i) {
    const int part = @NAME@_inputs[i];
    const int64_t bytes = @NAME@_parts[part].bytes;
    char* content = files > 0 ? read_file(argv[2 + i], bytes) : calloc((size_t)bytes, 1);
    if (content == NULL) fail("out of memory", 0);
    write_buffer(parts[part], bytes, content);
    free(content);
  }
  run(kernels, parts, @PREFIX@_PACKING, @PREFIX@_COMMANDS); /* also warms up */
  const double begin = seconds();
  for (int i = 0; i < 10; ++i) run(kernels, parts, @PREFIX@_PACKING, @PREFIX@_COMMANDS);
  printf("%s: %.1f us for each run\n", name, 1e6 * (seconds() - begin) / 10);
  for (int o = 0; files > 0 && o < @PREFIX@_OUTPUTS; ++o) {
    const int part = @NAME@_outputs[o];
    write_file(argv[2 + @PREFIX@_INPUTS + o], parts[part], @NAME@_parts[part].bytes);
  }
  return 0;
}
)c";

// The beginning of NAME_host.c. @FILES@ is an example of its arguments.
inline constexpr char kGpuNetworkAbout[] =
    R"c(/* Runs the network @NAME@ on the first @DEVICE@. It needs no headers of the driver:
 *
 *   cc @NAME@_host.c -o @NAME@_host -ldl
 *   ./@NAME@_host FOLDER @FILES@
 *
 * FOLDER is that of this file, with the weights and kernels. The files of the inputs hold their
 * elements without a header, row-major; those of the outputs are written in the same way. Without
 * them, the inputs are zeros, and only the time is printed.
 */
)c";

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_TEXT_H_

/* Opens the network that this shared object contains. */
#include "client/network/runtime/hone_program.h"

extern __attribute__((visibility("hidden"))) const hone_network_program hone_network_embedded;

hone_network_status hone_network_open_on(const char* weights_path, int32_t device,
                                         hone_network** network) {
  return hone_network_open_program(&hone_network_embedded, weights_path, device, network);
}

hone_network_status hone_network_open(const char* weights_path, hone_network** network) {
  return hone_network_open_on(weights_path, -1, network);
}

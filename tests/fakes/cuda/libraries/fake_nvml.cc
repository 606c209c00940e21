// libnvidia-ml.so.1 for tests, see README.md.
#include "tests/fakes/cuda/libraries/faults.h"

namespace {

const hone::fakes::Faults& Faults() {
  static const auto* const faults = new hone::fakes::Faults;
  return *faults;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  constexpr int kNotFound = 6;
  *device = const_cast<char*>(pci);
  return std::string(pci) == "0000:3b:00.0" ? 0 : kNotFound;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1410;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 55;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  constexpr unsigned long long kIdle = 0x1, kTemperature = 0x20;
  *reasons = Faults().Has("throttled") ? kTemperature : kIdle;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* errors) {
  *errors = static_cast<unsigned long long>(Faults().Number("ecc", 0));
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = Faults().Has("mig") ? 1 : 0;
  return 0;
}

}  // extern "C"

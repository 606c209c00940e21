// A library with the functions of NVRTC that behaves as if the text of a client had taken it over.
// HONE_FAKE_COMPILER says what it tries, "WHAT" or "WHAT:ARGUMENT"; it fails to compile, and its
// log says how the attempt ended.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace {

std::string program_log;

std::string Ended(bool succeeded) {
  return succeeded ? "it succeeded" : std::string("it failed: ") + strerror(errno);
}

std::string Try(const std::string& what, const std::string& argument) {
  if (what == "read") return Ended(open(argument.c_str(), O_RDONLY) >= 0);
  if (what == "write") return Ended(open(argument.c_str(), O_WRONLY | O_CREAT, 0644) >= 0);
  if (what == "variable") return Ended(getenv(argument.c_str()) != nullptr);
  if (what == "limit") {
    const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    return Ended(setrlimit(RLIMIT_AS, &all) == 0);
  }
  if (what == "thread") {
    pthread_t thread;
    const int error =
        pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
    errno = error;
    return Ended(error == 0);
  }
  if (what == "memory") {
    size_t most = 0;
    for (void* more; (more = malloc(size_t{256} << 20)) != nullptr; most += size_t{256} << 20) {
    }
    return Ended(most > size_t{8} << 30);
  }
  if (what == "file") {
    const int file = memfd_create("file", 0);
    return Ended(ftruncate(file, off_t{1} << 30) == 0);
  }
  if (what == "pin") {
    cpu_set_t cpus;
    return Ended(sched_getaffinity(getppid(), sizeof cpus, &cpus) == 0 &&
                 sched_setaffinity(getppid(), sizeof cpus, &cpus) == 0);
  }
  if (what == "folder") return Ended(mkdir(argument.c_str(), 0700) == 0);
  if (what == "socket") return Ended(socket(AF_INET, SOCK_STREAM, 0) >= 0);
  if (what == "fork") return Ended(fork() >= 0);
  if (what == "execute") return Ended(execl("/bin/true", "/bin/true", nullptr) == 0);
  if (what == "trace") return Ended(ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) == 0);
  if (what == "kill") return Ended(kill(getppid(), SIGKILL) == 0);
  return "unknown";
}

int Copy(const std::string& text, char* to) {
  memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 9;
  return 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  *architectures = 80;
  return 0;
}
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  *program = &program_log;
  return 0;
}
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcCompileProgram(void*, int, const char* const*) {
  const char* const words = getenv("HONE_FAKE_COMPILER");
  const std::string all = words == nullptr ? "" : words;
  const size_t colon = all.find(':');
  program_log = Try(all.substr(0, colon), colon == std::string::npos ? "" : all.substr(colon + 1));
  return 6;  // NVRTC_ERROR_COMPILATION
}
int nvrtcGetPTXSize(void*, size_t*) { return 1; }
int nvrtcGetPTX(void*, char*) { return 1; }
int nvrtcGetCUBINSize(void*, size_t*) { return 1; }
int nvrtcGetCUBIN(void*, char*) { return 1; }
int nvrtcGetProgramLogSize(void*, size_t* size) {
  *size = program_log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void*, char* to) { return Copy(program_log, to); }

}  // extern "C"

#ifndef HONE_CLIENT_CLI_OPENMP_WAIT_H_
#define HONE_CLIENT_CLI_OPENMP_WAIT_H_

namespace hone::cli {

// How many times a thread of OpenMP looks for work before it sleeps (GOMP_SPINCOUNT): some tenths
// of a millisecond, which is longer than the gaps between the steps of a network.
inline constexpr char kOpenMpSpins[] = "20000";

// Limits how long the threads of OpenMP wait actively, unless the user has set OMP_WAIT_POLICY or
// GOMP_SPINCOUNT. By default, libgomp's threads do so for many milliseconds. If another program has
// taken the core of one thread, the others then occupy the cores that this thread and that program
// could use, and a network takes up to a thousand times as long.
//
// The setting is a variable of the environment, which libgomp reads when it is loaded, at the first
// kernel. The server of a session inherits it; hone-runner has its own. REQUIRES: the process has
// one thread.
void LimitOpenMpWaiting();

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OPENMP_WAIT_H_

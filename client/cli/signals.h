#ifndef HONE_CLIENT_CLI_SIGNALS_H_
#define HONE_CLIENT_CLI_SIGNALS_H_

namespace hone::cli {

// Sets how the program handles signals. While an InterruptCounter exists, it handles SIGINT and
// SIGTERM instead.
//
// If the reader of standard error ends, the program continues, because its result is still wanted;
// if the reader of standard output ends, so does the program. With `json`, a signal that ends the
// program, including a crash, first prints an object with an error to standard output, unless
// SetJsonIsPrinted was called. So scripts never get an empty output.
void HandleSignals(bool json);
// Must be called when the object of --json has been printed.
void SetJsonIsPrinted();

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SIGNALS_H_

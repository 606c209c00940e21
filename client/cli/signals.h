#ifndef HONE_CLIENT_CLI_SIGNALS_H_
#define HONE_CLIENT_CLI_SIGNALS_H_

namespace hone::cli {

// The effect of signals on the program as a whole. InterruptCounter replaces that of SIGINT and
// SIGTERM for a while.
//
// The end of a reader of standard error does not end the program, because its result is still
// wanted; the end of a reader of standard output does. With `json`, a signal that ends the program,
// also by a crash, first prints an object with an error to standard output, unless
// SetJsonIsPrinted was called: a script never has to read an empty output.
void HandleSignals(bool json);
// Must be called when the object of --json has been printed.
void SetJsonIsPrinted();

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SIGNALS_H_

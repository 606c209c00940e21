// Adds what reproduces the literature to the registries, before the tests begin.

#include "server/research/register.h"

namespace {

[[maybe_unused]] const bool registered = [] {
  hone::research::Register();
  return true;
}();

}  // namespace

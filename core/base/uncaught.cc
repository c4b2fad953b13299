// An Error that nobody catches is told in a line, and not as `terminate called after throwing an instance of
// 'kolo::CodedError<(kolo::Code)2>'`.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

std::terminate_handler default_handler = nullptr;

void tell_uncaught_error() {
  if (const auto error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      std::fflush(nullptr);
      std::fprintf(stderr, "kolo: %s\n", described(error).c_str());
      std::_Exit(1);
    } catch (...) {  // not ours
    }
  }
  default_handler();
}

[[maybe_unused]] const bool installed = [] {
  default_handler = std::set_terminate(tell_uncaught_error);
  return true;
}();

}  // namespace

}  // namespace kolo

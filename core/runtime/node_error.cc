#include <kolo/core/runtime/node_error.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {

std::exception_ptr described(std::exception_ptr cause, const std::string& name, const std::string& op,
                             const std::string& device) {
  try {
    std::rethrow_exception(std::move(cause));
  } catch (const std::exception& error) {
    try {
      throw_error(code_of(error), fmt::format("{} [node \"{}\", {} on {}]", error.what(), name, op, device));
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace kolo

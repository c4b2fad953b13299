#include <kolo/core/cluster/master/task_error.h>

#include <fmt/format.h>

#include <kolo/core/base/text.h>

namespace kolo::detail {

std::exception_ptr make_error(Code code, const std::string& message) {
  try {
    throw_error(code, message);
  } catch (...) {
    return std::current_exception();
  }
}

Code code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return kolo::code_of(e);
  } catch (...) {
    return Code::unknown;
  }
}

std::exception_ptr from_task(const std::string& task, const std::exception_ptr& error) {
  const std::string text = message_of(error);
  if (text.starts_with("From /job:")) return error;
  return make_error(code_of(error), fmt::format("From {}:\n{}", task, text));
}

}  // namespace kolo::detail

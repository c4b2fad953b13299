// Errors of tasks, as a master tells them.
#pragma once

#include <exception>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo::detail {

/// The error of that code, as throw_error throws it.
std::exception_ptr make_error(Code code, const std::string& message);
Code code_of(const std::exception_ptr& error);
using kolo::code_of;  // of an exception that was caught
/// The same kind and text behind a line `From <task>:`.
std::exception_ptr from_task(const std::string& task, const std::exception_ptr& error);

}  // namespace kolo::detail

// The text of an exception that was handed from one thread, or one rank, to another.
#pragma once

#include <exception>
#include <string>

namespace kolo {

/// what() of the exception, or a sentence that says that it has none. `error` is not null.
std::string message_of(const std::exception_ptr& error);

}  // namespace kolo

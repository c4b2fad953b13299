// The errors of kolo's public face. Everything that is thrown to a user derives from Error and carries a
// canonical code.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace kolo {

enum class Code {
  cancelled,
  unknown,
  invalid_argument,
  deadline_exceeded,
  not_found,
  already_exists,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  internal,
  unavailable,
  data_loss,
};

/// "InvalidArgument", "NotFound", …: the name of the exception class without its ending.
const char* name(Code code);

/// A sentence that says what was asked, what was found, where, and what would be right. A value.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// The class that belongs to one code. A value.
/// Its constructor formats: InvalidArgumentError("{} is not in {}", a, b).
template <Code kCode>
class CodedError : public Error {
 public:
  template <typename... Args>
  explicit CodedError(fmt::format_string<Args...> text, Args&&... args)
      : Error(kCode, fmt::format(text, std::forward<Args>(args)...)) {}
};

using CancelledError = CodedError<Code::cancelled>;
using UnknownError = CodedError<Code::unknown>;
using InvalidArgumentError = CodedError<Code::invalid_argument>;
using DeadlineExceededError = CodedError<Code::deadline_exceeded>;
using NotFoundError = CodedError<Code::not_found>;
using AlreadyExistsError = CodedError<Code::already_exists>;
using ResourceExhaustedError = CodedError<Code::resource_exhausted>;
using FailedPreconditionError = CodedError<Code::failed_precondition>;
using AbortedError = CodedError<Code::aborted>;
using OutOfRangeError = CodedError<Code::out_of_range>;
using UnimplementedError = CodedError<Code::unimplemented>;
using InternalError = CodedError<Code::internal>;
using UnavailableError = CodedError<Code::unavailable>;
using DataLossError = CodedError<Code::data_loss>;

/// Throws the class that belongs to `code`:
/// how a layer re-throws an error to which it has added its own words.
[[noreturn]] void throw_error(Code code, const std::string& message);

/// The code and text of any exception: a kolo::Error's own; OutOfMemory is resource_exhausted;
/// all others are unknown.
Code code_of(const std::exception& error);

}  // namespace kolo

#include <kolo/core/base/error.h>

#include <new>

namespace kolo {

const char* name(Code code) {
  switch (code) {
    case Code::cancelled: return "Cancelled";
    case Code::unknown: return "Unknown";
    case Code::invalid_argument: return "InvalidArgument";
    case Code::deadline_exceeded: return "DeadlineExceeded";
    case Code::not_found: return "NotFound";
    case Code::already_exists: return "AlreadyExists";
    case Code::resource_exhausted: return "ResourceExhausted";
    case Code::failed_precondition: return "FailedPrecondition";
    case Code::aborted: return "Aborted";
    case Code::out_of_range: return "OutOfRange";
    case Code::unimplemented: return "Unimplemented";
    case Code::internal: return "Internal";
    case Code::unavailable: return "Unavailable";
    case Code::data_loss: return "DataLoss";
  }
  return "Unknown";
}

void throw_error(Code code, const std::string& message) {
  switch (code) {
    case Code::cancelled: throw CancelledError("{}", message);
    case Code::unknown: throw UnknownError("{}", message);
    case Code::invalid_argument: throw InvalidArgumentError("{}", message);
    case Code::deadline_exceeded: throw DeadlineExceededError("{}", message);
    case Code::not_found: throw NotFoundError("{}", message);
    case Code::already_exists: throw AlreadyExistsError("{}", message);
    case Code::resource_exhausted: throw ResourceExhaustedError("{}", message);
    case Code::failed_precondition: throw FailedPreconditionError("{}", message);
    case Code::aborted: throw AbortedError("{}", message);
    case Code::out_of_range: throw OutOfRangeError("{}", message);
    case Code::unimplemented: throw UnimplementedError("{}", message);
    case Code::internal: throw InternalError("{}", message);
    case Code::unavailable: throw UnavailableError("{}", message);
    case Code::data_loss: throw DataLossError("{}", message);
  }
  throw UnknownError("{}", message);
}

Code code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return own->code();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return Code::resource_exhausted;
  return Code::unknown;
}

}  // namespace kolo

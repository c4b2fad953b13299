// What a failed system call on a file is to kolo's users.
#pragma once

#include <string>

namespace kolo {

/// Throws ResourceExhaustedError for a full disk and a file size limit, FailedPreconditionError for what may
/// not be written or is not there, UnknownError otherwise; `cannot <what>: <reason>`.
[[noreturn]] void throw_file_error(const std::string& what, int error_number);

}  // namespace kolo

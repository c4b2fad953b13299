#include <kolo/core/base/file_error.h>

#include <cerrno>
#include <system_error>

#include <kolo/core/base/error.h>

namespace kolo {

void throw_file_error(const std::string& what, int error_number) {
  const std::string text = fmt::format("cannot {}: {}", what, std::generic_category().message(error_number));
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: throw ResourceExhaustedError("{}", text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP: throw FailedPreconditionError("{}", text);
    default: throw UnknownError("{}", text);
  }
}

}  // namespace kolo

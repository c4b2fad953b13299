#include <kolo/collectives/nccl/nccl_api.h>

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/cuda/libraries.h>

namespace kolo {
namespace {

// NCCL reads them itself; who looks into a log wants to know.
std::string options_of_environment() {
  std::string options;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::string_view(*entry).starts_with("NCCL_")) options += fmt::format(" {}", *entry);
  return options;
}

NcclLibrary open_nccl() {
  LibraryFunctions functions(nccl_kind(), CUDART_VERSION / 1000);
  NcclLibrary library{.version = functions.found().version};
  NcclApi& api = library.api;
  functions.take("ncclGetUniqueId", api.get_unique_id);
  functions.take("ncclCommInitRankConfig", api.comm_init_rank_config);
  functions.take("ncclCommFinalize", api.comm_finalize);
  functions.take("ncclCommDestroy", api.comm_destroy);
  functions.take("ncclCommAbort", api.comm_abort);
  functions.take("ncclCommGetAsyncError", api.comm_get_async_error);
  functions.take("ncclGetErrorString", api.get_error_string);
  functions.take("ncclGetLastError", api.get_last_error);
  functions.take("ncclAllReduce", api.all_reduce);
  library.why_not = functions.why_not();
  if (library.why_not.empty())
    log_debug("NCCL {} of {};{}", functions.found().version, functions.found().path,
              options_of_environment());
  return library;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = open_nccl();
  return library;
}

void check_nccl(const NcclApi& api, ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return;
  const char* const last = api.get_last_error(nullptr);
  const std::string more = last == nullptr || *last == '\0' ? "" : fmt::format(": {}", last);
  throw UnavailableError("{}: {} ({}){}", call, api.get_error_string(code), static_cast<int>(code), more);
}

}  // namespace kolo

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
  const LibraryKind kind = nccl_kind();
  const FoundLibrary found =
      find_library(kind, CUDART_VERSION / 1000, library_candidates(kind.soname, folder_of_plugin()));
  NcclLibrary library{.version = found.version};
  std::string missing;
  const auto take = [&](const char* name, auto& function) { take_function(found, name, function, missing); };
  NcclApi& api = library.api;
  take("ncclGetUniqueId", api.get_unique_id);
  take("ncclCommInitRankConfig", api.comm_init_rank_config);
  take("ncclCommFinalize", api.comm_finalize);
  take("ncclCommDestroy", api.comm_destroy);
  take("ncclCommAbort", api.comm_abort);
  take("ncclCommGetAsyncError", api.comm_get_async_error);
  take("ncclGetErrorString", api.get_error_string);
  take("ncclGetLastError", api.get_last_error);
  take("ncclAllReduce", api.all_reduce);
  library.why_not = why_not(found, kind, missing);
  if (library.why_not.empty())
    log_debug("NCCL {} of {};{}", found.version, found.path, options_of_environment());
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

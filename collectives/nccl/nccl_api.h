// The functions of NCCL that kolo calls, as a table: filled from the machine's library.
#pragma once

#include <nccl.h>

#include <string>

namespace kolo {

/// Named after NCCL's functions: ncclCommAbort is comm_abort.
struct NcclApi {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclAllReduce) all_reduce;
};

/// The machine's library, opened by the first call.
struct NcclLibrary {
  NcclApi api = {};
  std::string version = {};
  std::string why_not = {};  // "" where it serves
};
const NcclLibrary& nccl_library();

/// Returns where `code` is ncclSuccess; else throws UnavailableError with what NCCL says of it. call:
/// "ncclAllReduce".
void check_nccl(const NcclApi& api, ncclResult_t code, const char* call);

}  // namespace kolo

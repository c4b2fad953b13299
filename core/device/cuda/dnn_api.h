// The functions of cuDNN that kolo calls, those of its backend, as a table: filled from the machine's
// library, or by a test.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Named after cuDNN's functions: cudnnBackendFinalize is backend_finalize. A handle belongs to the GPU that
/// was current when it was made, and is not for two threads at once.
struct DnnApi {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnBackendCreateDescriptor) backend_create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) backend_destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) backend_set_attribute;
  decltype(&cudnnBackendGetAttribute) backend_get_attribute;
  decltype(&cudnnBackendFinalize) backend_finalize;
  decltype(&cudnnBackendExecute) backend_execute;
};

/// The machine's library, opened when it is first asked for. nullptr where there is none that serves; one
/// warning a process then says so, with `why`, which is "" where there is one.
const DnnApi* dnn_api(std::string* why = nullptr);

/// Throws InternalError with the library's own words, ResourceExhaustedError where it lacks memory.
void check_dnn(const DnnApi& api, cudnnStatus_t code, const char* call);

struct DnnHandle {
  DnnHandle(const DnnApi& table, cudnnHandle_t made, std::string of)
      : api(table), handle(made), machine(std::move(of)) {}

  const DnnApi& api;
  const cudnnHandle_t handle;
  const std::string machine;      // GPU, driver and cuDNN: what engines' times depend on
  cudaStream_t stream = nullptr;  // the handle's, by set_stream of ours; under the mutex
  Mutex mutex;  // held by whoever plans or runs something with the handle, and for what follows
  // Of engines that were measured on this GPU: by the convolution, their place among those that are asked for
  // it, and their number.
  std::map<std::string, std::map<std::pair<std::size_t, std::int64_t>, bool>> serves = {};
  // With KOLO_AUTOTUNE=1, by the convolution: milliseconds of those that were timed, by their place.
  std::map<std::string, std::map<std::size_t, double>> times = {};
};

}  // namespace kolo

#include <kolo/core/device/cuda/dnn_api.h>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/cuda/check_cuda.h>
#include <kolo/core/device/cuda/gpu_libraries.h>
#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/device/cuda/libraries.h>

namespace kolo {
namespace {

struct OpenedDnn {
  DnnApi api = {};
  std::string why = {};  // not; "" where it serves
};

// Said once a process, whatever the reason.
void warn_without_dnn(const std::string& why) {
  [[maybe_unused]] static const bool told =
      (log_warning("convolutions run on kolo's own kernels, which are many times slower than cuDNN: {}", why),
       true);
}

OpenedDnn open_dnn() {
  LibraryFunctions functions(cudnn_kind(), CUDART_VERSION / 1000);
  OpenedDnn opened;
  DnnApi& api = opened.api;
  functions.take("cudnnGetVersion", api.get_version);
  functions.take("cudnnCreate", api.create);
  functions.take("cudnnSetStream", api.set_stream);
  functions.take("cudnnGetLastErrorString", api.get_last_error_string);
  functions.take("cudnnBackendCreateDescriptor", api.backend_create_descriptor);
  functions.take("cudnnBackendDestroyDescriptor", api.backend_destroy_descriptor);
  functions.take("cudnnBackendSetAttribute", api.backend_set_attribute);
  functions.take("cudnnBackendGetAttribute", api.backend_get_attribute);
  functions.take("cudnnBackendFinalize", api.backend_finalize);
  functions.take("cudnnBackendExecute", api.backend_execute);
  opened.why = functions.why_not();
  if (!opened.why.empty()) warn_without_dnn(opened.why);
  return opened;
}

}  // namespace

const DnnApi* dnn_api(std::string* why) {
  static const OpenedDnn opened = open_dnn();
  if (why != nullptr) *why = opened.why;
  return opened.why.empty() ? &opened.api : nullptr;
}

void check_dnn(const DnnApi& api, cudnnStatus_t code, const char* call) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> text{};
  api.get_last_error_string(text.data(), text.size());
  const std::string line =
      fmt::format("{}: error {} of cuDNN: {}", call, static_cast<int>(code), text.data());
  if (code == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    throw ResourceExhaustedError("{}", line);
  throw InternalError("{}", line);
}

DnnHandle* GpuLibraries::dnn(std::string& why) {
  const auto* const table = dnn_api(&why);
  if (table == nullptr) return nullptr;
  const MutexLock lock(mutex_);
  make_current(api_, gpu_);
  if (dnn_) return dnn_.get();
  try {
    cudnnHandle_t handle = nullptr;
    check_dnn(*table, table->create(&handle), "cudnnCreate");
    dnn_ = std::make_shared<DnnHandle>(*table, handle,
                                       machine_with_library(api_, gpu_, "cuDNN", table->get_version()));
  } catch (const Error& error) {
    warn_without_dnn(why = error.what());
  }
  return dnn_.get();
}

}  // namespace kolo

#include <kolo/core/device/cuda/blas_api.h>

#include <cuda_runtime_api.h>

#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/cuda/gpu_libraries.h>
#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/device/cuda/libraries.h>

namespace kolo {
namespace {

struct OpenedBlas {
  BlasApi api = {};
  std::string why = {};  // not; "" where it serves
};

// Said once a process, whatever the reason.
void warn_without_blas(const std::string& why) {
  [[maybe_unused]] static const bool told =
      (log_warning("matrix products run on kolo's own kernel, which is many times slower than cuBLASLt: {}",
                   why),
       true);
}

OpenedBlas open_blas() {
  LibraryFunctions functions(cublas_lt_kind(CUDART_VERSION / 1000), CUDART_VERSION / 1000);
  OpenedBlas opened;
  BlasApi& api = opened.api;
  functions.take("cublasLtGetVersion", api.get_version);
  functions.take("cublasLtCreate", api.create);
  functions.take("cublasLtMatmulDescCreate", api.matmul_desc_create);
  functions.take("cublasLtMatmulDescDestroy", api.matmul_desc_destroy);
  functions.take("cublasLtMatmulDescSetAttribute", api.matmul_desc_set_attribute);
  functions.take("cublasLtMatrixLayoutCreate", api.matrix_layout_create);
  functions.take("cublasLtMatrixLayoutDestroy", api.matrix_layout_destroy);
  functions.take("cublasLtMatrixLayoutSetAttribute", api.matrix_layout_set_attribute);
  functions.take("cublasLtMatmulPreferenceCreate", api.matmul_preference_create);
  functions.take("cublasLtMatmulPreferenceDestroy", api.matmul_preference_destroy);
  functions.take("cublasLtMatmulPreferenceSetAttribute", api.matmul_preference_set_attribute);
  functions.take("cublasLtMatmulAlgoGetHeuristic", api.matmul_algo_get_heuristic);
  functions.take("cublasLtMatmul", api.matmul);
  opened.why = functions.why_not();
  if (!opened.why.empty()) warn_without_blas(opened.why);
  return opened;
}

const char* name_of(cublasStatus_t code) {
  switch (code) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "an error";
  }
}

}  // namespace

const BlasApi* blas_api(std::string* why) {
  static const OpenedBlas opened = open_blas();
  if (why != nullptr) *why = opened.why;
  return opened.why.empty() ? &opened.api : nullptr;
}

void check_blas(cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  if (code == CUBLAS_STATUS_ALLOC_FAILED)
    throw ResourceExhaustedError("{}: {} ({})", call, name_of(code), static_cast<int>(code));
  throw InternalError("{}: {} ({})", call, name_of(code), static_cast<int>(code));
}

BlasHandle* GpuLibraries::blas(std::string& why) {
  const auto* const table = blas_api(&why);
  if (table == nullptr) return nullptr;
  const MutexLock lock(mutex_);
  make_current(api_, gpu_);
  if (blas_) return blas_.get();
  try {
    cublasLtHandle_t handle = nullptr;
    check_blas(table->create(&handle), "cublasLtCreate");
    blas_ = std::make_shared<BlasHandle>(*table, handle,
                                         machine_with_library(api_, gpu_, "cuBLASLt", table->get_version()));
  } catch (const Error& error) {
    warn_without_blas(why = error.what());
  }
  return blas_.get();
}

}  // namespace kolo

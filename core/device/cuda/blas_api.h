// The functions of cuBLASLt that kolo calls, as a table: filled from the machine's library, or by a test.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Named after cuBLASLt's functions: cublasLtMatmulDescCreate is matmul_desc_create. A handle may be used by
/// several threads; it belongs to the GPU that was current when it was made.
struct BlasApi {
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) matrix_layout_set_attribute;
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic;
  decltype(&cublasLtMatmul) matmul;
};

/// The machine's library, opened when it is first asked for. nullptr where there is none that serves; one
/// warning a process then says so, with `why`, which is "" where there is one.
const BlasApi* blas_api(std::string* why = nullptr);

/// Throws ResourceExhaustedError where memory is short, InternalError for other errors.
void check_blas(cublasStatus_t code, const char* call);

struct BlasHandle {
  BlasHandle(const BlasApi& table, cublasLtHandle_t made, std::string of)
      : api(table), handle(made), machine(std::move(of)) {}

  const BlasApi& api;
  const cublasLtHandle_t handle;
  const std::string machine;  // GPU, driver and cuBLASLt: what algorithms' times depend on
  Mutex mutex;                // held by whoever chooses, and for what follows
  // With KOLO_AUTOTUNE=1, by the product: the place of the fastest among the heuristic's, and milliseconds.
  std::map<std::string, std::pair<std::size_t, double>> fastest = {};
};

}  // namespace kolo

// A libcublasLt.so that does what descriptors say with three loops, and checks what the real one only wishes:
// alignment as promised to the heuristic, workspace, and that all belongs together.
//
// KOLO_FAKE_CUBLAS_MS=2:0.5  how long events take the second algorithm of each product to run; 3 otherwise
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "launches.h"
#include "products.h"
#include "tf32.h"

namespace kolo::fake_cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 10, kWorkspaceAlignment = 256;

struct Handle {
  int gpu;
};

struct Operation {
  bool rounds = false;  // to TF32's 10 bits
  bool transpose_a = false, transpose_b = false;
};

struct Matrix {
  std::int64_t rows = 0, cols = 0, ld = 0;
  bool by_rows = false;
  std::int64_t batch = 1, batch_step = 0;

  std::int64_t at(std::int64_t row, std::int64_t col) const {
    return by_rows ? row * ld + col : col * ld + row;
  }
  std::int64_t extent() const { return (batch - 1) * batch_step + at(rows - 1, cols - 1) + 1; }
};

struct Preference {
  std::size_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // a, b, c, d: what the real one assumes unless told
};

constexpr int kOffered = 3;  // algorithms for a product, which compute the same

// What stands behind an algorithm, whose opaque words hold its number, from 1, its workspace and its place.
struct Choice {
  Operation operation;
  Matrix a, b, c;
  std::uint32_t alignment[4];
};
std::vector<Choice>& choices() {
  static auto* const all = new std::vector<Choice>;
  return *all;
}

cublasStatus_t status_of_failure() {
  return code_of_failure() == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                                        : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <typename Body>
cublasStatus_t blas_call(const char* name, const Body& body) {
  MutexLock lock(state_mutex());
  if (begins_failing(name)) return status_of_failure();
  body();
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T, typename Pointer>
cublasStatus_t create(const char* name, Pointer* made, T value) {
  return blas_call(name, [&] {
    count_object(1);
    *made = reinterpret_cast<Pointer>(new T(value));
  });
}
template <typename T, typename Pointer>
cublasStatus_t destroy(const char* name, Pointer made) {
  MutexLock lock(state_mutex());
  const bool fails = begins_failing(name);
  count_object(-1);
  delete reinterpret_cast<T*>(made);
  return fails ? status_of_failure() : CUBLAS_STATUS_SUCCESS;
}

template <typename T>
T value_of(const void* value, std::size_t bytes) {
  if (bytes != sizeof(T)) report("an attribute of {} bytes is given {}", sizeof(T), bytes);
  T copy;
  std::memcpy(&copy, value, bytes);
  return copy;
}

bool same(const Matrix& one, const Matrix& other) {
  return one.rows == other.rows && one.cols == other.cols && one.ld == other.ld && one.batch == other.batch &&
         one.by_rows == other.by_rows && one.batch_step == other.batch_step;
}

void check_problem(const Operation& operation, const Matrix& a, const Matrix& b, const Matrix& c) {
  for (const Matrix& matrix : {a, b, c})
    if (matrix.ld < (matrix.by_rows ? matrix.cols : matrix.rows) || matrix.batch != c.batch)
      report("a matrix of {} x {} has leading dimension {}, {} in a batch", matrix.rows, matrix.cols,
             matrix.ld, matrix.batch);
  const std::int64_t rows = operation.transpose_a ? a.cols : a.rows,
                     inner = operation.transpose_a ? a.rows : a.cols;
  const std::int64_t inner_b = operation.transpose_b ? b.cols : b.rows;
  const std::int64_t cols = operation.transpose_b ? b.rows : b.cols;
  if (inner != inner_b || rows != c.rows || cols != c.cols)
    report("[{} x {}] · [{} x {}] is not [{} x {}]", rows, inner, inner_b, cols, c.rows, c.cols);
}

const float* operand(const void* memory, const Matrix& matrix, std::uint32_t alignment) {
  return reinterpret_cast<const float*>(
      on_host(current_gpu(), memory, static_cast<std::size_t>(matrix.extent()) * sizeof(float), alignment));
}

// A factor of the product that is computed: how far apart its rows and its columns lie.
struct Factor {
  const float* first;
  std::int64_t row_step, col_step;

  Factor(const float* from, const Matrix& matrix, bool transposed)
      : first(from), row_step(matrix.by_rows ? matrix.ld : 1), col_step(matrix.by_rows ? 1 : matrix.ld) {
    if (transposed) std::swap(row_step, col_step);
  }
  void transpose() { std::swap(row_step, col_step); }
};

// `copy` is filled, row by row, where the factor does not lie as the product reads it, or is rounded: copies
// of all weights were a third of what tests computed.
Lines lines_of(const Factor& factor, bool as_rows, bool rounds, std::int64_t rows, std::int64_t cols,
               std::vector<float>& copy) {
  if (!rounds && factor.col_step == 1) return {factor.first, factor.row_step};
  if (!rounds && !as_rows && factor.row_step == 1) return {factor.first, factor.col_step, true};
  copy.resize(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col) {
      const float x = factor.first[row * factor.row_step + col * factor.col_step];
      copy[static_cast<std::size_t>(row * cols + col)] = rounds ? to_tf32(x) : x;
    }
  return {copy.data(), cols};
}

void multiply(const Choice& problem, const float* a, const float* b, float* c, float alpha, float beta) {
  const Operation& operation = problem.operation;
  const Matrix &la = problem.a, &lb = problem.b, &lc = problem.c;
  const std::int64_t inner = operation.transpose_a ? la.rows : la.cols;
  std::vector<float> copy_of_x, copy_of_y;
  for (std::int64_t n = 0; n < lc.batch; ++n) {
    Factor x(a + n * la.batch_step, la, operation.transpose_a),
        y(b + n * lb.batch_step, lb, operation.transpose_b);
    std::int64_t rows = lc.rows, cols = lc.cols;
    if (!lc.by_rows) {  // by rows it is the transposed product
      x.transpose(), y.transpose();
      std::swap(x, y);
      std::swap(rows, cols);
    }
    multiply_rows(lines_of(x, /*as_rows=*/true, operation.rounds, rows, inner, copy_of_x),
                  lines_of(y, /*as_rows=*/false, operation.rounds, inner, cols, copy_of_y), rows, inner, cols,
                  [&](std::int64_t row, const float* sums) {
                    float* const results = c + n * lc.batch_step + row * lc.ld;
                    for (std::int64_t col = 0; col < cols; ++col)
                      results[col] = alpha * sums[col] + (beta == 0 ? 0 : beta * results[col]);
                  });
  }
}

}  // namespace
}  // namespace kolo::fake_cuda

using namespace kolo::fake_cuda;

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_call("cublasLtCreate", [&] {
    static std::deque<Handle> made;  // kolo keeps them to the end of the process
    *handle = reinterpret_cast<cublasLtHandle_t>(&made.emplace_back(Handle{current_gpu()}));
  });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  const bool rounds = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((compute != CUBLAS_COMPUTE_32F && !rounds) || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return create("cublasLtMatmulDescCreate", made, Operation{.rounds = rounds});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  return destroy<Operation>("cublasLtMatmulDescDestroy", made);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  return blas_call("cublasLtMatmulDescSetAttribute", [&] {
    Operation& operation = *reinterpret_cast<Operation*>(made);
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        operation.transpose_a = (value_of<std::int32_t>(value, bytes) == CUBLAS_OP_T) != breaks("transpose");
        break;
      case CUBLASLT_MATMUL_DESC_TRANSB:
        operation.transpose_b = value_of<std::int32_t>(value, bytes) == CUBLAS_OP_T;
        break;
      default: report("attribute {} of a product is unknown to the fake", static_cast<int>(attribute));
    }
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t cols, std::int64_t ld) {
  if (type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return create(
      "cublasLtMatrixLayoutCreate", made,
      Matrix{.rows = static_cast<std::int64_t>(rows), .cols = static_cast<std::int64_t>(cols), .ld = ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  return destroy<Matrix>("cublasLtMatrixLayoutDestroy", made);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  return blas_call("cublasLtMatrixLayoutSetAttribute", [&] {
    Matrix& matrix = *reinterpret_cast<Matrix*>(made);
    switch (attribute) {
      case CUBLASLT_MATRIX_LAYOUT_ORDER:
        matrix.by_rows = value_of<std::int32_t>(value, bytes) == CUBLASLT_ORDER_ROW;
        break;
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: matrix.batch = value_of<std::int32_t>(value, bytes); break;
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        matrix.batch_step = value_of<std::int64_t>(value, bytes);
        break;
      default: report("attribute {} of a matrix is unknown to the fake", static_cast<int>(attribute));
    }
  });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return create("cublasLtMatmulPreferenceCreate", made, Preference());
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  return destroy<Preference>("cublasLtMatmulPreferenceDestroy", made);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  return blas_call("cublasLtMatmulPreferenceSetAttribute", [&] {
    Preference& preference = *reinterpret_cast<Preference*>(made);
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        preference.workspace = value_of<std::uint64_t>(value, bytes);
        break;
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        if ((value_of<std::uint32_t>(value, bytes) & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0)
          report("a reduction in place does not repeat bit for bit");
        break;
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        preference.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] =
            value_of<std::uint32_t>(value, bytes);
        break;
      default: report("attribute {} of a preference is unknown to the fake", static_cast<int>(attribute));
    }
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wishes, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  return blas_call("cublasLtMatmulAlgoGetHeuristic", [&] {
    const auto& preference = *reinterpret_cast<const Preference*>(wishes);
    Choice choice{*reinterpret_cast<const Operation*>(operation),
                  *reinterpret_cast<const Matrix*>(a),
                  *reinterpret_cast<const Matrix*>(b),
                  *reinterpret_cast<const Matrix*>(c),
                  {}};
    check_problem(choice.operation, choice.a, choice.b, choice.c);
    if (!same(choice.c, *reinterpret_cast<const Matrix*>(d))) report("c and d are not alike");
    std::copy_n(preference.alignment, 4, choice.alignment);
    *found = std::min(asked, kOffered);
    if (*found == 0) return;
    choices().push_back(choice);
    for (int place = 0; place < *found; ++place) {
      results[place] = {};
      results[place].algo.data[0] = choices().size();
      results[place].workspaceSize = std::min(preference.workspace, kWorkspace);
      results[place].algo.data[1] = results[place].workspaceSize;
      results[place].algo.data[2] = static_cast<std::uint64_t>(place);
      results[place].state = CUBLAS_STATUS_SUCCESS;
    }
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return blas_call("cublasLtMatmul", [&] {
    if (reinterpret_cast<const Handle*>(handle)->gpu != current_gpu())
      report("the handle is of GPU {}", reinterpret_cast<const Handle*>(handle)->gpu);
    const std::uint64_t number = algorithm->data[0];
    if (number == 0 || number > choices().size()) report("the algorithm is none of the heuristic's");
    const Choice choice = choices()[number - 1];
    const auto& asked = *reinterpret_cast<const Operation*>(operation);
    if (asked.transpose_a != choice.operation.transpose_a ||
        asked.transpose_b != choice.operation.transpose_b ||
        !same(choice.a, *reinterpret_cast<const Matrix*>(la)) ||
        !same(choice.b, *reinterpret_cast<const Matrix*>(lb)) ||
        !same(choice.c, *reinterpret_cast<const Matrix*>(lc)) ||
        !same(choice.c, *reinterpret_cast<const Matrix*>(ld)))
      report("the algorithm was chosen for another problem");
    if (c != d) report("c and d are not the same memory");
    if (workspace_bytes < algorithm->data[1])
      report("a workspace of {} bytes, the algorithm needs {}", workspace_bytes, algorithm->data[1]);
    std::byte* const scratch = on_host(current_gpu(), workspace, workspace_bytes, kWorkspaceAlignment);
    const float* const x = operand(a, choice.a, choice.alignment[0]);
    const float* const y = operand(b, choice.b, choice.alignment[1]);
    float* const z = const_cast<float*>(operand(d, choice.c, choice.alignment[3]));
    elapsed_milliseconds() =
        milliseconds_of("KOLO_FAKE_CUBLAS_MS", static_cast<std::int64_t>(algorithm->data[2]) + 1);
    const float factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
    enqueue(stream, [=] {
      if (workspace_bytes > 0) std::memset(scratch, 0xee, workspace_bytes);  // nobody else's meanwhile
      multiply(choice, x, y, z, factor, kept);
    });
  });
}
}

// Matrix products by cuBLASLt, which stores matrices by columns: a row-major matrix is, to it, the transposed
// one. So cᵀ = bᵀ · aᵀ is asked for, with b as its first operand, and nothing is copied.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/cuda/blas_api.h>
#include <kolo/core/device/cuda/counts.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/engine_book.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_random.h>
#include <kolo/core/kernels/cuda/products.h>

namespace kolo::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;
// What is promised of operands. Arenas, variables and buckets keep it; the plan checks.
constexpr std::uint32_t kAlignment = 16;

// A descriptor of cuBLASLt: an object that two functions of the table make and destroy.
template <typename Pointer>
class Described {
 public:
  Described(Pointer made, cublasStatus_t (*destroy)(Pointer)) : pointer_(made), destroy_(destroy) {}
  Described(Described&& other) noexcept
      : pointer_(std::exchange(other.pointer_, nullptr)), destroy_(other.destroy_) {}
  Described& operator=(Described&& other) noexcept {
    std::swap(pointer_, other.pointer_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Described() {
    if (pointer_ != nullptr) destroy_(pointer_);
  }
  Pointer get() const { return pointer_; }

 private:
  Pointer pointer_;
  cublasStatus_t (*destroy_)(Pointer);
};

using Operation = Described<cublasLtMatmulDesc_t>;
using Layout = Described<cublasLtMatrixLayout_t>;
using Preference = Described<cublasLtMatmulPreference_t>;

Operation operation_of(const BlasApi& api, const Product& product, bool allow_tf32) {
  cublasLtMatmulDesc_t made = nullptr;
  check_blas(api.matmul_desc_create(&made, allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                    CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  Operation operation(made, api.matmul_desc_destroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
    const std::int32_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_blas(api.matmul_desc_set_attribute(made, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a);
  return operation;
}

// Of a matrix that is stored row-major as [rows, cols], `batch` times.
Layout layout_of(const BlasApi& api, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t made = nullptr;
  check_blas(api.matrix_layout_create(&made, CUDA_R_32F, static_cast<std::uint64_t>(cols),
                                      static_cast<std::uint64_t>(rows), cols),
             "cublasLtMatrixLayoutCreate");
  Layout layout(made, api.matrix_layout_destroy);
  if (batch == 1) return layout;
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t elements = rows * cols;
  check_blas(api.matrix_layout_set_attribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
             "cublasLtMatrixLayoutSetAttribute");
  check_blas(api.matrix_layout_set_attribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &elements,
                                             sizeof elements),
             "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

Preference preference(const BlasApi& api) {
  cublasLtMatmulPreference_t made = nullptr;
  check_blas(api.matmul_preference_create(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made, api.matmul_preference_destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_blas(api.matmul_preference_set_attribute(made, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  // Not INPLACE: which part is added first would be a matter of luck, and so the last bits.
  const std::uint32_t schemes =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(attribute, kAlignment);
  return preference;
}

std::string text_of(const Product& product, bool allow_tf32) {
  return fmt::format("product, {} times [{},{}]{} by [{},{}]{}{}", product.batch, product.rows, product.inner,
                     product.transpose_a ? " transposed" : "", product.inner, product.cols,
                     product.transpose_b ? " transposed" : "", allow_tf32 ? ", TF32" : "");
}

class BlasMatmul final : public Kernel {
 public:
  BlasMatmul(BlasHandle& blas, const Product& product, bool allow_tf32)
      : blas_(blas),
        product_(product),
        question_(text_of(product, allow_tf32)),
        operation_(operation_of(blas.api, product, allow_tf32)),
        a_(product.transpose_a ? layout_of(blas.api, product.batch, product.inner, product.rows)
                               : layout_of(blas.api, product.batch, product.rows, product.inner)),
        b_(product.transpose_b ? layout_of(blas.api, product.batch, product.cols, product.inner)
                               : layout_of(blas.api, product.batch, product.inner, product.cols)),
        c_(layout_of(blas.api, product.batch, product.rows, product.cols)) {}

  // The library's first choice, or the fastest of those that it offers. Returns why there is none, "" where
  // there is one.
  std::string choose(PhysicalGpu& gpu) {
    std::array<cublasLtMatmulHeuristicResult_t, kMostOffered> offered = {};
    int found = 0;
    const cublasStatus_t code = blas_.api.matmul_algo_get_heuristic(
        blas_.handle, operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference(blas_.api).get(),
        kMostOffered, offered.data(), &found);
    if (code != CUBLAS_STATUS_SUCCESS || found == 0 || offered[0].state != CUBLAS_STATUS_SUCCESS)
      return fmt::format("cuBLASLt has no algorithm for it ({})", static_cast<int>(code));
    choice_ = offered[place_of_choice(gpu, {offered.data(), static_cast<std::size_t>(found)})];
    return "";
  }
  std::size_t workspace_bytes() const { return choice_.workspaceSize; }

  void compute(KernelContext& context) override {
    ++launch_count();
    put(choice_, context.input(0).data<float>(), context.input(1).data<float>(),
        context.output(0).data<float>(), context.scratch(), stream_of(context));
  }

 private:
  static constexpr int kMostOffered = 8;
  using Offered = std::span<const cublasLtMatmulHeuristicResult_t>;

  // As a file says, or this process has found out before; else measured where that is asked for.
  std::size_t place_of_choice(PhysicalGpu& gpu, Offered offered) {
    const MutexLock lock(blas_.mutex);
    EngineBook* const book = engine_book();
    if (const auto kept = book != nullptr ? book->find(blas_.machine, question_) : std::nullopt)
      if (const auto place = static_cast<std::size_t>(kept->place); place < offered.size()) return place;
    if (!chooses_by_time() || offered.size() == 1) return 0;
    const auto known = blas_.fastest.find(question_);
    if (known != blas_.fastest.end()) return known->second.first;
    try {
      const auto [place, took] = fastest_of(gpu, offered);
      blas_.fastest[question_] = {place, took};
      const auto number = static_cast<std::int64_t>(place);
      if (book != nullptr)
        book->note(blas_.machine, question_,
                   {.engine = number + 1, .place = number, .by_time = true, .milliseconds = took});
      return place;
    } catch (const ResourceExhaustedError&) {  // too little memory to tell
      return 0;
    }
  }

  std::pair<std::size_t, double> fastest_of(PhysicalGpu& gpu, Offered offered) const {
    const MemoryOwner owner("measuring cuBLASLt's algorithms");
    const CudaStream stream(gpu.api);
    std::size_t workspace_bytes = 0;
    for (const auto& one : offered) workspace_bytes = std::max(workspace_bytes, one.workspaceSize);
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      return Tensor(DType::f32, {product_.batch, rows, cols}, gpu.allocator);
    };
    const Tensor a = matrix(product_.rows, product_.inner), b = matrix(product_.inner, product_.cols),
                 c = matrix(product_.rows, product_.cols),
                 workspace(DType::u8, {static_cast<std::int64_t>(workspace_bytes)}, gpu.allocator);
    const IdleAtEnd idle{gpu.api, stream.get()};
    for (const Tensor* const operand : {&a, &b})  // of zeros it would take less time
      check_cuda(launch_random(stream.get(), {.of = {.seed = 1},
                                              .distribution = Distribution::uniform,
                                              .first = -1,
                                              .second = 1,
                                              .y = operand->data<float>(),
                                              .elements = operand->elements()}),
                 "random numbers");
    std::pair<std::size_t, double> fastest{0, std::numeric_limits<double>::infinity()};
    for (std::size_t place = 0; place < offered.size(); ++place) {
      const auto once = [&] {
        put(offered[place], a.data<float>(), b.data<float>(), c.data<float>(), workspace.raw(), stream.get());
      };
      once();
      const double took = time_of_three(gpu.api, stream.get(), once);
      log_debug("{}: cuBLASLt's algorithm {} takes {:.4f} ms", question_, place + 1, took);
      if (took < fastest.second) fastest = {place, took};
    }
    return fastest;
  }

  void put(const cublasLtMatmulHeuristicResult_t& choice, const float* a, const float* b, float* c,
           void* workspace, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    check_blas(blas_.api.matmul(blas_.handle, operation_.get(), &one, b, b_.get(), a, a_.get(), &zero, c,
                                c_.get(), c, c_.get(), &choice.algo, workspace, choice.workspaceSize, stream),
               "cublasLtMatmul");
  }

  BlasHandle& blas_;
  Product product_;
  const std::string question_;
  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t choice_ = {};
};

std::unique_ptr<Kernel> make_blas_matmul(KernelInit& init) {
  for (int i = 0; i < 2; ++i)
    if (!init.input_shape(i).is_fully_known())
      return init.decline("a shape depends on the values of the step");
  const Product product = product_of(init);
  if (product.batch * product.rows * product.inner * product.cols == 0)
    return init.decline("there are no elements to multiply");
  std::string why;
  BlasHandle* const blas = gpu_of(init).libraries.blas(why);
  if (blas == nullptr) return init.decline(why);
  auto kernel = std::make_unique<BlasMatmul>(*blas, product, allows_tf32(init));
  why = kernel->choose(gpu_of(init));
  if (!why.empty()) return init.decline(why);
  init.request_scratch(kernel->workspace_bytes());
  init.request_alignment(kAlignment);
  return kernel;
}

const RegisterGpuKernel blas_kernels[] = {
    {"MatMul", {DType::f32}, make_blas_matmul, 1},
    {"BatchMatMul", {DType::f32}, make_blas_matmul, 1},
};

}  // namespace
}  // namespace kolo::cuda

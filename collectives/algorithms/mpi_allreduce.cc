#include <kolo/collectives/algorithms/mpi_allreduce.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo::detail {
namespace {

// MPI hands a reduction function no context, so there is one for each op and type.
template <ReduceOp kOp, DType kType>
void reduce_for_mpi(void* in, void* in_out, int* count, MPI_Datatype*) {
  reduce(kOp, kType, in_out, in, *count);
}

template <ReduceOp kOp>
MPI_User_function* function_for(DType dtype) {
  switch (dtype) {
    case DType::f32: return reduce_for_mpi<kOp, DType::f32>;
    case DType::f64: return reduce_for_mpi<kOp, DType::f64>;
    case DType::i32: return reduce_for_mpi<kOp, DType::i32>;
    case DType::i64: return reduce_for_mpi<kOp, DType::i64>;
    case DType::boolean: return reduce_for_mpi<kOp, DType::boolean>;
    case DType::u8: return reduce_for_mpi<kOp, DType::u8>;
    case DType::i8: return reduce_for_mpi<kOp, DType::i8>;
    case DType::f16: return reduce_for_mpi<kOp, DType::f16>;
    case DType::bf16: return reduce_for_mpi<kOp, DType::bf16>;
    case DType::string: break;
  }
  return nullptr;
}

MPI_User_function* function_for(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average: return function_for<ReduceOp::sum>(dtype);
    case ReduceOp::min: return function_for<ReduceOp::min>(dtype);
    case ReduceOp::max: return function_for<ReduceOp::max>(dtype);
    case ReduceOp::product: return function_for<ReduceOp::product>(dtype);
    case ReduceOp::adasum: break;
  }
  return nullptr;
}

class MpiOp {
 public:
  explicit MpiOp(MPI_User_function* function) {
    check_mpi(MPI_Op_create(function, /*commute=*/1, &op_), "MPI_Op_create");
  }
  MpiOp(const MpiOp&) = delete;
  MpiOp& operator=(const MpiOp&) = delete;
  ~MpiOp() {
    if (mpi_is_running()) MPI_Op_free(&op_);
  }
  MPI_Op get() const { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

MPI_Datatype word_of(std::size_t bytes) {
  switch (bytes) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

class MpiAllreduce final : public Collective {
 public:
  MpiAllreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op)
      : comm_(comm), buffer_(buffer), op_(op), function_(function_for(op, buffer.dtype)) {
    check_mpi(MPI_Comm_size(comm, &ranks_), "MPI_Comm_size");
  }

  void start() override {
    if (!mpi_op_) mpi_op_ = std::make_unique<MpiOp>(function_);
    all_are_here_ = false;
    requests_.assign(1, MPI_REQUEST_NULL);
    check_mpi(MPI_Ibarrier(comm_, &requests_[0]), "MPI_Ibarrier");
  }

  Progress progress() override {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (done == 0) return all_are_here_ ? Progress::advanced : Progress::none;
    if (!all_are_here_) {
      all_are_here_ = true;
      post();
      return Progress::advanced;
    }
    if (op_ == ReduceOp::average) divide(buffer_.dtype, buffer_.bytes, buffer_.elements, ranks_);
    return Progress::finished;
  }

 private:
  static constexpr std::int64_t kPieceElements = std::int64_t{1} << 27;

  void post() {
    const std::size_t bytes = size_of(buffer_.dtype);
    requests_.clear();
    for (std::int64_t first = 0; first < buffer_.elements; first += kPieceElements) {
      const auto count = static_cast<int>(std::min(kPieceElements, buffer_.elements - first));
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, buffer_.bytes + first * bytes, count, word_of(bytes),
                               mpi_op_->get(), comm_, &requests_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Iallreduce");
    }
  }

  MPI_Comm comm_;
  TypedBuffer buffer_;
  ReduceOp op_;
  MPI_User_function* function_;
  int ranks_ = 1;
  bool all_are_here_ = false;
  std::unique_ptr<MpiOp> mpi_op_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::shared_ptr<Collective> mpi_allreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op) {
  return std::make_shared<MpiAllreduce>(comm, buffer, op);
}

}  // namespace kolo::detail

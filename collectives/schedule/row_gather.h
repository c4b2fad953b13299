// The rows that each rank has a gradient for, to every rank: a slot of a schedule behind its buckets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/algorithms/text_exchange.h>
#include <kolo/collectives/schedule/scheduled_operation.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/collectives/schedule/step_state.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// First how many rows each rank gives, and its flags with that; then the values, divided by the number of
/// ranks where an average is asked for; then the indices. Where these are more bytes than the whole tensor:
/// the sum of the whole tensors, then which rows are in it. Void as a bucket is.
class RowGather final : public ScheduledOperation {
 public:
  RowGather(int slot, std::shared_ptr<StepState> state, std::shared_ptr<Communicator> communicator,
            RowGatherSpec spec, bool average, std::string label);

  /// Before each submission; the tensors stay as they are until it is over, and the indices are rows of the
  /// tensor. A submission without gives no rows.
  void set_own(const Tensor& values, const Tensor& indices);
  /// Of all ranks in their order, or each once, ascending; once it has finished and the step is not void.
  const Tensor& values() const { return values_; }
  const Tensor& indices() const { return indices_; }

  OperationDetails details() const override;
  void start() override;
  Progress progress() override;

 private:
  enum class Stage { skipped, counting, values, indices, whole, touched, asking };
  struct Header {
    std::int64_t rows;
    std::int64_t stop, end_of_data, failed, save;
  };

  StepFlags received_flags() const;
  std::int64_t all_rows() const;
  std::int64_t row_bytes() const;
  bool whole_is_smaller() const;
  void start_values();
  void start_whole();
  void take_touched_rows();
  void ask_why();
  void forget_own() { own_values_ = own_indices_ = Tensor(); }
  /// `all` with this rank's part filled in: an all-gather of it, started.
  void start_gather(const Tensor& all, const Tensor& own);

  const int slot_;
  const std::shared_ptr<StepState> state_;
  const std::shared_ptr<Communicator> communicator_;
  const RowGatherSpec spec_;
  const bool average_;
  std::vector<Header> headers_;
  std::shared_ptr<Collective> counting_;
  std::shared_ptr<Collective> gathering_;
  TextExchange reasons_;
  Tensor own_values_, own_indices_;  // no elements: none were given
  Tensor values_, indices_;
  Tensor whole_, touched_;  // u8: 1 for rows that some rank has
  std::shared_ptr<Collective> whole_sum_, touched_max_;
  Stage stage_ = Stage::skipped;
};

}  // namespace kolo::detail

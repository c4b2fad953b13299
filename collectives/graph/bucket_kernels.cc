// Kernels of the nodes in bucket_ops.cc: each submits its slot to the schedule, and the node is done when the
// slot is.
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/row_numbers.h>

namespace kolo {
namespace {

// It holds the node's completion, as a closure that held it would be allocated at each step.
class SlotKernel : public AsyncKernel {
 protected:
  explicit SlotKernel(KernelInit& init) : schedule_(init.resource<Schedule>()) {}
  Schedule& schedule() const { return *schedule_; }
  auto end_node() {
    return [this](std::exception_ptr error) { done_(std::move(error)); };
  }

  Completion done_;

 private:
  const std::shared_ptr<Schedule> schedule_;
};

class BucketKernel final : public SlotKernel {
 public:
  explicit BucketKernel(KernelInit& init)
      : SlotKernel(init),
        bucket_(schedule().buckets()[init.attr<std::size_t>(detail::kBucketAttr)]),
        to_read_(init.is_marked(detail::kToReadMark)) {}

  void start(KernelContext&, Completion done) override {
    done_ = done;
    if (to_read_) bucket_.submit_to_read(end_node());
    else bucket_.submit(end_node());
  }

 private:
  BucketSlot& bucket_;
  const bool to_read_;
};

class BucketGatherKernel final : public SlotKernel {
 public:
  explicit BucketGatherKernel(KernelInit& init)
      : SlotKernel(init),
        slot_(schedule().buckets()[init.attr<std::size_t>(detail::kBucketAttr)].shards()),
        offsets_(init.attr<std::vector<std::int64_t>>("offsets")) {}

  void start(KernelContext& context, Completion done) override {
    done_ = done;
    std::byte* const memory = slot_.memory()->data();
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& part = context.input(i);
      if (part.bytes() > 0)
        std::memcpy(memory + offsets_[static_cast<std::size_t>(i)], part.raw(), part.bytes());
    }
    slot_.submit(end_node());
  }

 private:
  ShardsSlot& slot_;
  const std::vector<std::int64_t> offsets_;  // of the parts in the memory, in bytes
};

class GatherRowsKernel final : public SlotKernel {
 public:
  explicit GatherRowsKernel(KernelInit& init)
      : SlotKernel(init),
        slot_(schedule().rows()[init.attr<std::size_t>(detail::kGatherAttr)]),
        rows_(init.attr<std::int64_t>("rows")) {}

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    // The ranks may add rows up where they belong, instead of passing them on.
    detail::with_row_numbers(context.input(1), rows_, [](const auto*) {});
    slot_.submit(context.input(0), context.input(1), [this](std::exception_ptr error) {
      if (!error) {
        context_->set_output(0, slot_.values());
        context_->set_output(1, slot_.indices());
      }
      done_(std::move(error));
    });
  }

 private:
  RowsSlot& slot_;
  const std::int64_t rows_;
  KernelContext* context_ = nullptr;
};

class BucketsWritableKernel final : public SlotKernel {
 public:
  explicit BucketsWritableKernel(KernelInit& init) : SlotKernel(init) {}
  void start(KernelContext&, Completion done) override {
    done_ = done;
    schedule().when_writable(end_node());
  }
};

const RegisterKernel bucket_kernel(detail::kBucketAllReduceOp, "CPU", {}, make_kernel<BucketKernel>);
const RegisterKernel gpu_bucket_kernel(detail::kBucketAllReduceOp, "GPU", {}, make_kernel<BucketKernel>);
const RegisterKernel bucket_scatter_kernel(detail::kBucketReduceScatterOp, "CPU", {},
                                           make_kernel<BucketKernel>);
const RegisterKernel gather_kernel(detail::kBucketAllGatherOp, "CPU", {}, make_kernel<BucketGatherKernel>);
const RegisterKernel gather_rows_kernel(detail::kGatherRowsOp, "CPU", {}, make_kernel<GatherRowsKernel>);
const RegisterKernel writable_kernel(detail::kBucketsWritableOp, "CPU", {},
                                     make_kernel<BucketsWritableKernel>);

}  // namespace
}  // namespace kolo

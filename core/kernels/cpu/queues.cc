#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/queue.h>

namespace kolo {
namespace {

using detail::QueueClient;
using detail::QueueElement;
using detail::QueueState;

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

const RegisterContained queue_state("FIFOQueue", [](const Node& node, const std::string& name) {
  return std::make_shared<QueueState>(
      name, node.attr<std::int64_t>("capacity"),
      detail::element_spec(node.attr<Names>("component_types"), node.attr<Numbers>("shapes")));
});

std::shared_ptr<QueueState> queue_of(const KernelInit& init) {
  return std::dynamic_pointer_cast<QueueState>(init.resource<Contained>());
}

// One run at a time, and so one call of the queue.
class QueueKernel : public AsyncKernel, public Cancellable, protected QueueClient {
 public:
  explicit QueueKernel(const KernelInit& init) : queue_(queue_of(init)) {}
  void cancel() override { queue_->cancel(*this); }
  std::string waits_for(const std::vector<std::string>&) override { return queue_->waits_in(*this); }

 protected:
  const std::shared_ptr<QueueState> queue_;
};

class Enqueue final : public QueueKernel {
 public:
  Enqueue(const KernelInit& init, bool many) : QueueKernel(init), many_(many) {}

  void start(KernelContext& context, Completion done) override {
    check(context);
    elements.clear();
    const std::int64_t rows = many_ ? context.input(1).shape().dim(0) : 1;
    for (std::int64_t row = 0; row < rows; ++row) elements.push_back(element(context, row));
    done_ = done;
    queue_->put(*this);
  }

 private:
  void check(const KernelContext& context) const {
    std::vector<DType> types;
    std::vector<Shape> shapes;
    for (int i = 1; i < context.num_inputs(); ++i) {
      types.push_back(context.input(i).dtype());
      shapes.push_back(context.input(i).shape());
    }
    detail::check_tuple(queue_->spec(), types, shapes, many_);
  }

  // A copy: the step's memory is used again.
  QueueElement element(const KernelContext& context, std::int64_t row) const {
    QueueElement element;
    for (int i = 1; i < context.num_inputs(); ++i) {
      const Tensor& component = context.input(i);
      if (!many_) {
        element.push_back(component.clone());
        continue;
      }
      const auto& dims = component.shape().dims();
      element.push_back(
          component.rows(row, row + 1).reshaped(Shape(Numbers(dims.begin() + 1, dims.end()))).clone());
    }
    return element;
  }

  void finished(std::exception_ptr error) override {
    elements.clear();  // of one that was cancelled
    const Completion done = done_;
    done(std::move(error));
  }

  const bool many_;
  Completion done_;
};

// A graph from a file may promise elements of another kind, for which memory is planned then.
void check_promise(const KernelInit& init, const QueueState& queue) {
  if (detail::element_spec(init.attr<Names>("component_types"), init.attr<Numbers>("shapes")) != queue.spec())
    throw InvalidArgumentError("the op's component types and shapes are not its queue's");
}

class Dequeue : public QueueKernel {
 public:
  explicit Dequeue(const KernelInit& init) : QueueKernel(init) { check_promise(init, *queue_); }

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    take();
  }

 protected:
  bool is_planned(DType type) const { return !queue_->spec().shapes.empty() && type != DType::string; }
  const KernelContext& context() const { return *context_; }
  virtual void take() { queue_->take(*this, 1, true); }
  virtual void deliver(const KernelContext& context) {
    for (int i = 0; i < context.num_outputs(); ++i) {
      Tensor& component = elements.front()[static_cast<std::size_t>(i)];
      if (is_planned(component.dtype())) context.output(i).copy_from(component);
      else context.set_output(i, std::move(component));
    }
  }

 private:
  void finished(std::exception_ptr error) override {
    const Completion done = done_;
    try {
      if (!error) deliver(*context_);
    } catch (...) {
      error = std::current_exception();
    }
    elements.clear();
    done(std::move(error));
  }

  KernelContext* context_ = nullptr;
  Completion done_;
};

class DequeueNewest final : public Dequeue {
 public:
  using Dequeue::Dequeue;

 private:
  void take() override {
    queue_->take_newest(*this, context().input(1).value<std::int64_t>(),
                        context().input(2).value<std::int64_t>());
  }
};

class DequeueMany final : public Dequeue {
 public:
  DequeueMany(const KernelInit& init, bool exactly)
      : Dequeue(init), count_(init.attr<std::size_t>("n")), exactly_(exactly) {}

 private:
  void take() override { queue_->take(*this, count_, exactly_); }

  void deliver(const KernelContext& context) override {
    const auto rows = static_cast<std::int64_t>(elements.size());
    for (int i = 0; i < context.num_outputs(); ++i) {
      const auto component = static_cast<std::size_t>(i);
      const DType type = queue_->spec().types[component];
      Numbers dims = queue_->spec().shapes[component].dims();
      dims.insert(dims.begin(), rows);
      if (!exactly_ || !is_planned(type)) context.set_output(i, Tensor(type, Shape(std::move(dims))));
      for (std::int64_t row = 0; row < rows; ++row)
        context.output(i).rows(row, row + 1).copy_from(elements[static_cast<std::size_t>(row)][component]);
    }
  }

  const std::size_t count_;
  const bool exactly_;
};

// What needs no waiting.
template <void (*kCall)(QueueState&, const KernelContext&)>
class CallQueue final : public Kernel {
 public:
  explicit CallQueue(const KernelInit& init) : queue_(queue_of(init)) {}
  void compute(KernelContext& context) override { kCall(*queue_, context); }

 private:
  const std::shared_ptr<QueueState> queue_;
};

class CloseQueue final : public Kernel {
 public:
  explicit CloseQueue(const KernelInit& init)
      : queue_(queue_of(init)), cancel_pending_(init.attr<bool>("cancel_pending_enqueues")) {}
  void compute(KernelContext&) override { queue_->close(cancel_pending_); }

 private:
  const std::shared_ptr<QueueState> queue_;
  const bool cancel_pending_;
};

class ResetQueue final : public Kernel {
 public:
  explicit ResetQueue(const KernelInit& init)
      : queue_(queue_of(init)), text_(init.attr<std::string>("text")) {}
  void compute(KernelContext& context) override {
    std::optional<std::int64_t> generation;
    if (context.num_inputs() > 1) generation = context.input(1).value<std::int64_t>();
    queue_->reset(text_, generation);
  }

 private:
  const std::shared_ptr<QueueState> queue_;
  const std::string text_;
};

template <typename K>
KernelFactory with(bool argument) {
  return [argument](KernelInit& init) { return std::make_unique<K>(init, argument); };
}

const RegisterKernel enqueue_kernel("QueueEnqueue", "CPU", {}, with<Enqueue>(false));
const RegisterKernel enqueue_many_kernel("QueueEnqueueMany", "CPU", {}, with<Enqueue>(true));
const RegisterKernel dequeue_kernel("QueueDequeue", "CPU", {}, make_kernel<Dequeue>);
const RegisterKernel dequeue_newest_kernel("QueueDequeueNewest", "CPU", {}, make_kernel<DequeueNewest>);
const RegisterKernel dequeue_many_kernel("QueueDequeueMany", "CPU", {}, with<DequeueMany>(true));
const RegisterKernel dequeue_up_to_kernel("QueueDequeueUpTo", "CPU", {}, with<DequeueMany>(false));
const RegisterKernel close_kernel("QueueClose", "CPU", {}, make_kernel<CloseQueue>);

const RegisterKernel reset_kernel("QueueReset", "CPU", {}, make_kernel<ResetQueue>);

void write_size(QueueState& queue, const KernelContext& context) {
  *context.output(0).data<std::int32_t>() = static_cast<std::int32_t>(queue.size());
}
void write_is_closed(QueueState& queue, const KernelContext& context) {
  *context.output(0).data<bool>() = queue.is_closed();
}
void write_generation(QueueState& queue, const KernelContext& context) {
  *context.output(0).data<std::int64_t>() = queue.generation();
}
const RegisterKernel queue_size_kernel("QueueSize", "CPU", {}, make_kernel<CallQueue<write_size>>);
const RegisterKernel is_closed_kernel("QueueIsClosed", "CPU", {}, make_kernel<CallQueue<write_is_closed>>);
const RegisterKernel generation_kernel("QueueGeneration", "CPU", {},
                                       make_kernel<CallQueue<write_generation>>);

}  // namespace
}  // namespace kolo

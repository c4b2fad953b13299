#include <kolo/core/runtime/segments.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/node_log.h>
#include <kolo/core/runtime/replay_check.h>
#include <kolo/core/runtime/stream_kernels.h>

namespace kolo {
namespace {

const std::string& choice_of_environment() {
  static const std::string choice = env_choice("KOLO_CUDA_GRAPHS", "1", {"0", "1", "check"});
  return choice;
}

// Of all that a member's work refers to.
std::size_t addresses_of(const KernelContext& context) {
  std::size_t hash = reinterpret_cast<std::uintptr_t>(context.scratch_memory);
  const auto add = [&](const Tensor& tensor) {
    hash = hash * 1099511628211u + reinterpret_cast<std::uintptr_t>(tensor.raw());
    hash = hash * 1099511628211u + tensor.bytes();
  };
  for (const Tensor* const input : context.inputs) add(*input);
  for (const Tensor& output : context.outputs) add(output);
  return hash;
}

class SegmentKernel final : public Kernel {
 public:
  SegmentKernel(std::vector<SegmentMember> members, Device& device, Device& host)
      : members_(std::move(members)) {
    std::vector<WrittenMemory> written;
    for (const SegmentMember& member : members_) {
      auto& kernel = dynamic_cast<StreamKernel&>(*member.kernel);
      for (const Tensor* const tensor : member.written) written.push_back({tensor, &kernel.node_name()});
      kernels_.push_back(&kernel);
      before_.insert(before_.end(), kernel.before().begin(), kernel.before().end());
      passed_.insert(passed_.end(), kernel.passed().begin(), kernel.passed().end());
    }
    if (choice_of_environment() == "check") check_.emplace(device, host, std::move(written));
  }

  void compute(KernelContext&) override {
    for (const SegmentMember& member : members_)
      for (const VariableStorage* const variable : member.must_be_initialized)
        if (!variable->initialized.load())
          throw FailedPreconditionError("Attempting to use uninitialized value {}", variable->name);
    if (!was_captured_) capture();
    if (graph_ == nullptr) return one_by_one();
    if (check_) check_addresses();
    Stream& stream = kernels_.front()->stream();
    for (const StreamKernel* const kernel : kernels_) kernel->log_begin();
    stream.wait_for(before_, passed_);
    for (std::size_t m = 0; m < members_.size(); ++m) kernels_[m]->log_use(*members_[m].context);
    if (!kernels_.front()->has_failed()) {
      put_numbers(stream);
      if (compares()) check_->compare([&] { graph_->launch(); }, [&] { put_again(stream); });
      else graph_->launch();
    }
    for (StreamKernel* const kernel : kernels_) kernel->record_end();
  }

 private:
  void capture() {
    was_captured_ = true;
    const SegmentMember* put_last = nullptr;
    try {
      graph_ = kernels_.front()->stream().capture([this, &put_last](void* native) {
        for (std::size_t m = 0; m < members_.size(); ++m) {
          if (native != nullptr) put_last = &members_[m];
          kernels_[m]->put(*members_[m].context, native);
        }
      });
    } catch (const Error& error) {
      const std::size_t m = put_last == nullptr ? 0 : static_cast<std::size_t>(put_last - members_.data());
      log_debug("{} nodes are put on {} one by one, since it does not keep them; the last was {}: {}",
                members_.size(), kernels_[m]->stream().name(), kernels_[m]->node_name(), error.what());
    }
    for (const SegmentMember& member : members_) addresses_.push_back(addresses_of(*member.context));
  }

  // Those that this launch's members read, in one piece of work before it.
  void put_numbers(Stream& stream) {
    if (stream.native() == nullptr) return;
    NumberedKernel* any = nullptr;
    KernelContext* context = nullptr;
    numbers_.clear();
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (NumberedKernel* const numbered = kernels_[m]->numbered()) {
        any = numbered, context = members_[m].context;
        numbers_.push_back(numbered->next_number(*context));
      }
    if (any == nullptr) return;
    stream.enqueue([&] {
      context->native_stream = stream.native();
      any->put_numbers(*context, numbers_);
    });
  }

  // Not where the members would draw their next numbers.
  bool compares() {
    if (!check_ || launches_++ % kLaunchesPerCheck != 0) return false;
    return kernels_.front()->stream().native() != nullptr ||
           std::none_of(kernels_.begin(), kernels_.end(),
                        [](StreamKernel* kernel) { return kernel->numbered() != nullptr; });
  }

  // By the numbers of this launch, as the host has them: whether they lie where they are read is part of what
  // is checked.
  void put_again(Stream& stream) {
    stream.enqueue([&] {
      auto number = numbers_.begin();
      for (std::size_t m = 0; m < members_.size(); ++m) {
        KernelContext& context = *members_[m].context;
        if (kernels_[m]->numbered() == nullptr) kernels_[m]->put(context, stream.native());
        else kernels_[m]->put_with(context, stream.native(), number++->value);
      }
    });
  }

  void one_by_one() {
    for (const SegmentMember& member : members_) member.kernel->compute(*member.context);
  }

  void check_addresses() const {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (addresses_of(*members_[m].context) != addresses_[m])
        throw InternalError(
            "the memory of node {} is not where it was when its work was kept; KOLO_CUDA_GRAPHS=0 keeps none",
            kernels_[m]->node_name());
  }

  const std::vector<SegmentMember> members_;
  std::vector<StreamKernel*> kernels_;
  std::vector<StreamEvent*> before_, passed_;
  std::vector<std::size_t> addresses_;
  std::vector<StepNumber> numbers_;
  bool was_captured_ = false;
  std::unique_ptr<StreamGraph> graph_;  // nullptr: the stream does not keep it
  std::optional<ReplayCheck> check_;
  std::int64_t launches_ = 0;
};

}  // namespace

bool keeps_segments() { return choice_of_environment() != "0" && !waits_after_each_piece(); }

std::vector<Segment> find_segments(const std::vector<OrderedNode>& nodes,
                                   const std::vector<bool>& repeatable) {
  std::vector<Segment> segments;
  Segment open;
  int members = 0;
  const auto close = [&] {
    if (members >= kFewestMembers) segments.push_back(open);
    members = 0;
  };
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
    const OrderedNode& node = nodes[n];
    const bool is_member =
        node.stream != nullptr && node.runs_ahead && !node.is_name && !node.can_be_skipped && repeatable[n];
    if (!is_member && node.is_name && repeatable[n] && !node.can_be_skipped) continue;
    if (members > 0 && (!is_member || nodes[open.first].stream != node.stream)) close();
    if (!is_member) continue;
    if (members++ == 0) open.first = n;
    open.last = n;
  }
  close();
  return segments;
}

std::vector<int> leaders_of(const std::vector<Segment>& segments, std::size_t nodes) {
  std::vector<int> leaders(nodes);
  for (std::size_t n = 0; n < nodes; ++n) leaders[n] = static_cast<int>(n);
  for (const Segment& segment : segments)
    std::fill(leaders.begin() + segment.first, leaders.begin() + segment.last + 1, segment.first);
  return leaders;
}

std::unique_ptr<Kernel> make_segment_kernel(std::vector<SegmentMember> members, Device& device,
                                            Device& host) {
  return std::make_unique<SegmentKernel>(std::move(members), device, host);
}

}  // namespace kolo

// core's Group over the communicator of all ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/job/runtime.h>
#include <kolo/core/runtime/group.h>

namespace kolo::detail {

class MpiGroup final : public Group {
 public:
  explicit MpiGroup(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  int rank() const override { return runtime_->process().rank; }
  int size() const override { return runtime_->process().size; }
  void broadcast(std::span<const Tensor> tensors, int root) override;
  void gather(const Tensor& own, std::span<const Tensor> parts, int root) override;
  void scatter(std::span<const Tensor> parts, const Tensor& own, int root) override;
  std::string broadcast(const std::string& text, int root) override;
  std::vector<std::string> allgather(const std::string& text) override;
  bool is_same_everywhere(const std::string& text) override;

 private:
  std::shared_ptr<Runtime> runtime_;
};

}  // namespace kolo::detail

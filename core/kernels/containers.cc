#include <kolo/core/kernels/containers.h>

#include <utility>

#include <kolo/core/base/registry.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

Registry<ContainedFactory>& registry() {
  static Registry<ContainedFactory> factories("the state of");
  return factories;
}

class Handle final : public Kernel {
 public:
  explicit Handle(const KernelInit& init) : name_(Tensor::scalar(init.node())) {}
  void compute(KernelContext& context) override { context.set_output(0, name_); }

 private:
  const Tensor name_;
};

std::string given_or(const std::string& given, const std::string& fallback) {
  return given.empty() ? fallback : given;
}

}  // namespace

RegisterContained::RegisterContained(const std::string& op, ContainedFactory make, SourceLine place) {
  registry().add(op, std::move(make), place);
  const RegisterKernel handle(op, "CPU", {}, make_kernel<Handle>, 0, place);
}

std::shared_ptr<Contained> Containers::find_or_make(const Node& node) {
  const std::string name = given_or(node.attr<std::string>("shared_name"), node.name());
  const Key key(given_or(node.attr<std::string>("container"), kDefault), node.op(), name);
  MutexLock lock(mutex_);
  auto& contained = all_[key];
  if (contained) contained->check_shared_by(node);
  else contained = registry().at(node.op())(node, name);
  return contained;
}

void Containers::clear() {
  MutexLock lock(mutex_);
  all_.clear();
}

}  // namespace kolo

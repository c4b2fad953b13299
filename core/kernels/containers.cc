#include <kolo/core/kernels/containers.h>

#include <iterator>
#include <utility>
#include <vector>

#include <kolo/core/base/registry.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

Registry<ContainedFactory>& factories() {
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
  factories().add(op, std::move(make), place);
  const RegisterKernel handle(op, "CPU", {}, make_kernel<Handle>, 0, place);
}

std::shared_ptr<Contained> Containers::find_or_make(const Node& node) {
  const std::string name = given_or(node.attr<std::string>("shared_name"), node.name());
  const Key key(given_or(node.attr<std::string>("container"), kDefault), node.op(), name);
  MutexLock lock(mutex_);
  if (const auto found = all_.find(key); found != all_.end()) {
    found->second->check_shared_by(node);
    return found->second;
  }
  auto made = factories().at(node.op())(node, name);  // may throw: what stands in all_ is whole
  return all_.emplace(key, std::move(made)).first->second;
}

void Containers::clear() {
  MutexLock lock(mutex_);
  all_.clear();
}

void Containers::drop(const std::string& container) {
  std::vector<std::shared_ptr<Contained>> dropped;
  {
    MutexLock lock(mutex_);
    for (auto it = all_.begin(); it != all_.end();) {
      const bool here = std::get<0>(it->first) == container;
      if (here) dropped.push_back(it->second);
      // Sessions that stay must not be left with another state than those to come.
      const bool is_used = !here || it->second.use_count() > 2;
      it = is_used ? std::next(it) : all_.erase(it);
    }
  }
  for (const auto& contained : dropped) contained->drop();
}

}  // namespace kolo

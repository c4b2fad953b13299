#include <kolo/models/keras/multi_gpu.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/model_internal.h>
#include <kolo/models/keras/multi_gpu_internal.h>

namespace kolo::keras {
namespace {

using detail::LayerImpl;
using detail::ModelImpl;

// The rows of one replica, taken where the batch is.
class SliceImpl final : public LayerImpl {
 public:
  SliceImpl(std::int64_t index, std::int64_t parts) : LayerImpl("Lambda", {}), index_(index), parts_(parts) {}

 protected:
  Outputs compute(const detail::CallContext& c, const Outputs& inputs) override {
    return {batch_slice(c.scope.colocate_with(Operation(inputs[0])), inputs[0], index_, parts_)};
  }

 private:
  std::int64_t index_, parts_;
};

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + '\'';
  return '[' + text + ']';
}

// "/cpu:0", "/gpu:0", …: CPUs first, then by number.
std::vector<std::string> devices_of(Workspace& workspace, const char* type) {
  std::vector<std::string> names;
  int count = 0;
  for (const DeviceAttributes& device : workspace.session().list_devices()) count += device.type == type;
  for (int i = 0; i < count; ++i)
    names.push_back(fmt::format("/{}:{}", std::string(type) == "CPU" ? "cpu" : "gpu", i));
  return names;
}

void check_devices(Workspace& workspace, const std::vector<std::string>& wanted, const std::string& asked) {
  std::vector<std::string> there = devices_of(workspace, "CPU");
  const std::vector<std::string> gpus = devices_of(workspace, "GPU");
  there.insert(there.end(), gpus.begin(), gpus.end());
  for (const std::string& device : wanted)
    if (std::find(there.begin(), there.end(), device) == there.end())
      throw InvalidArgumentError(
          "To call `multi_gpu_model` with `gpus={}`, we expect the following devices to be available: {}. "
          "However this machine only has: {}. Try reducing `gpus`.",
          asked, quoted(wanted), quoted(there));
}

std::vector<int> checked_gpus(Workspace& workspace, const Gpus& gpus) {
  static constexpr char kTooFew[] =
      "For multi-gpu usage to be effective, call `multi_gpu_model` with `{} >= 2`. "
      "Received: `gpus={}`";
  std::vector<int> ids;
  std::string asked;
  if (gpus.ids) {
    ids = *gpus.ids;
    asked = fmt::format("[{}]", fmt::join(ids, ", "));
    if (ids.size() < 2) throw InvalidArgumentError(kTooFew, "len(gpus)", asked);
  } else {
    const int count = gpus.count.value_or(static_cast<int>(devices_of(workspace, "GPU").size()));
    asked = std::to_string(count);
    if (count < 2) throw InvalidArgumentError(kTooFew, "gpus", asked);
    for (int i = 0; i < count; ++i) ids.push_back(i);
  }
  std::vector<std::string> wanted = {"/cpu:0"};
  for (const int id : ids) wanted.push_back(fmt::format("/gpu:{}", id));
  check_devices(workspace, wanted, asked);
  return ids;
}

void relocate(const Model& model) {
  Workspace& workspace = model.model().workspace();
  const std::vector<LayerImpl*> moved = model.model().leaves();
  const auto on_cpu = workspace.device("/cpu:0");
  for (LayerImpl* layer : moved) layer->renew_weights();
  for (const std::shared_ptr<LayerImpl>& layer : LayerImpl::layers_of(workspace)) {
    auto* const user = dynamic_cast<ModelImpl*>(layer.get());
    if (user == nullptr) continue;
    const std::vector<LayerImpl*> leaves = user->leaves();
    if (std::any_of(moved.begin(), moved.end(), [&](LayerImpl* layer) {
          return std::find(leaves.begin(), leaves.end(), layer) != leaves.end();
        }))
      user->forget_compiled();
  }
}

// The template called on each replica's rows: by GPU, the results of all outputs.
std::vector<std::vector<KerasTensor>> replicas(const Model& model, const std::vector<int>& ids) {
  Workspace& workspace = model.model().workspace();
  std::vector<std::vector<KerasTensor>> results;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::vector<KerasTensor> parts;
    for (const KerasTensor& input : model.inputs()) {
      const Layer slice(
          std::make_shared<SliceImpl>(static_cast<std::int64_t>(i), static_cast<std::int64_t>(ids.size())));
      parts.push_back(slice(input));
    }
    const detail::ReplicaPlace place(workspace, fmt::format("/gpu:{}", ids[i]),
                                     fmt::format("replica_{}", ids[i]));
    results.push_back(model.call(parts));
  }
  return results;
}

// As Keras calls them: outputs that share a name are all numbered, from 1.
std::vector<std::string> merged_names(const detail::ModelImpl& model) {
  std::map<std::string, int> count, number;
  for (const KerasTensor& output : model.outputs()) ++count[output.layer()->name()];
  std::vector<std::string> names;
  for (const KerasTensor& output : model.outputs()) {
    const std::string& name = output.layer()->name();
    names.push_back(count[name] == 1 ? name : fmt::format("{}_{}", name, ++number[name]));
  }
  return names;
}

}  // namespace

Model multi_gpu_model(const Model& model, const Gpus& gpus, const MultiGpuOptions& options) {
  model.model().require_built();
  Workspace& workspace = model.model().workspace();
  const std::vector<int> ids = checked_gpus(workspace, gpus);
  if (options.cpu_relocation) relocate(model);
  const auto results = replicas(model, ids);
  const std::string merge_device = options.cpu_merge ? "/cpu:0" : fmt::format("/gpu:{}", ids.front());
  const auto merging = workspace.device(merge_device);
  const std::vector<std::string> names = merged_names(model.model());
  std::vector<KerasTensor> merged;
  for (std::size_t output = 0; output < names.size(); ++output) {
    std::vector<KerasTensor> parts;
    for (const auto& replica : results) parts.push_back(replica[output]);
    merged.push_back(Concatenate(0, {.name = names[output]})(parts));
  }
  Model parallel(model.inputs(), merged);
  parallel.model().set_replicated(model.model().template_model(), merge_device);
  return parallel;
}

Context::Context(const std::string& text) : is_gpu(text.compare(0, 4, "gpu(") == 0), id(0) {
  const bool has_type = is_gpu || text.compare(0, 4, "cpu(") == 0;
  const char *begin = text.data() + 4, *end = text.data() + text.size() - 1;
  const bool has_number =
      has_type && text.back() == ')' && (begin == end || std::from_chars(begin, end, id).ptr == end);
  if (!has_number || id < 0)
    throw InvalidArgumentError("Unknown context: {}; contexts are gpu(0), gpu(1), … and cpu()", text);
}

std::string Context::text() const { return fmt::format("{}({})", is_gpu ? "gpu" : "cpu", id); }
std::string Context::device() const { return fmt::format("/{}:{}", is_gpu ? "gpu" : "cpu", id); }

namespace detail {

std::vector<int> gpus_of(Workspace& workspace, const std::vector<Context>& context) {
  std::vector<int> ids;
  std::vector<std::string> devices;
  for (const Context& one : context) {
    if (context.size() > 1 && !one.is_gpu)
      throw InvalidArgumentError("context: {} stands among {} contexts; several must all be GPUs", one.text(),
                                 context.size());
    if (std::find(devices.begin(), devices.end(), one.device()) != devices.end())
      throw InvalidArgumentError("context: {} is given twice", one.text());
    devices.push_back(one.device());
    ids.push_back(one.id);
  }
  if (context.size() > 1) return ids;
  check_devices(workspace, devices, fmt::format("[{}]", fmt::join(ids, ", ")));
  return {};
}

}  // namespace detail
}  // namespace kolo::keras

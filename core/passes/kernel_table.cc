#include <kolo/core/passes/kernel_table.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {
namespace {

const std::vector<DType> kAllButStrings = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                           DType::u8,  DType::i8,  DType::f16, DType::bf16};

// Of the types that a CPU kernel takes, those for which a GPU may run the op.
std::vector<DType> types_on_gpu(const OpSchema& schema, const std::vector<DType>& of_kernel) {
  const auto& allowed = schema.types_on_gpu() ? *schema.types_on_gpu() : kAllButStrings;
  if (of_kernel.empty()) return allowed;
  std::vector<DType> types;
  for (const DType type : of_kernel)
    if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) types.push_back(type);
  return types;
}

}  // namespace

KernelTable registered_kernel_table(bool gpus_run_cpu_kernels) {
  return [gpus_run_cpu_kernels](const OpSchema& schema) {
    std::vector<KernelSupport> table;
    if (schema.name() == kFeedOp) return std::vector<KernelSupport>{{"CPU"}, {"GPU"}};  // told, not chosen
    // No kernel stands behind it: what replaces it is made where it was put.
    if (schema.is_expanded_by_pass()) return std::vector<KernelSupport>{{"CPU"}, {"GPU"}};
    for (const KernelEntry& kernel : kernels_of(schema.name())) {
      if (kernel.device_type == "GPU" && gpus_run_cpu_kernels) continue;
      table.push_back({kernel.device_type, kernel.types});
      if (kernel.device_type != "CPU" || !gpus_run_cpu_kernels || schema.is_cpu_only()) continue;
      auto types = types_on_gpu(schema, kernel.types);
      if (!types.empty()) table.push_back({"GPU", std::move(types)});
    }
    return table;
  };
}

std::string describe_kernels(const std::vector<KernelSupport>& kernels) {
  std::string lines;
  for (const KernelSupport& kernel : kernels) {
    std::string types;
    for (const DType type : kernel.types)
      types += (types.empty() ? "" : ", ") + std::string(tf_enum_name(type));
    lines += fmt::format("{}  device='{}'{}", lines.empty() ? "" : "\n", kernel.device_type,
                         types.empty() ? "" : "; T in [" + types + "]");
  }
  return lines.empty() ? "  <no registered kernels>" : lines;
}

}  // namespace kolo

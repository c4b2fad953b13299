#include <models/examples/libtorch_mnist/averaged_gradients.h>

#include <torch/autograd.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

namespace {

kolo::DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat: return kolo::DType::f32;
    case torch::kDouble: return kolo::DType::f64;
    case torch::kHalf: return kolo::DType::f16;
    case torch::kBFloat16: return kolo::DType::bf16;
    case torch::kLong: return kolo::DType::i64;  // such as a batch normalization's number of batches
    default: throw std::invalid_argument("a tensor has a type that kolo does not know");
  }
}

// Gradients that live in kolo's memory: names, sizes and types alone.
std::vector<kolo::NamedBuffer> gradients_of(const torch::nn::Module& model) {
  std::vector<kolo::NamedBuffer> list;
  for (const auto& parameter : model.named_parameters())
    list.push_back({parameter.key(), nullptr, parameter->numel(), dtype_of(*parameter)});
  return list;
}

}  // namespace

void broadcast_module(const torch::nn::Module& model) {
  std::vector<kolo::NamedBuffer> list;
  for (const auto& tensors : {model.named_parameters(), model.named_buffers()})
    for (const auto& tensor : tensors)
      list.push_back({tensor.key(), tensor->data_ptr(), tensor->numel(), dtype_of(*tensor)});
  kolo::broadcast_parameters(list);
}

AveragedGradients::AveragedGradients(const torch::nn::Module& model) : buckets_(gradients_of(model)) {
  for (torch::Tensor& parameter : model.parameters()) {
    const int index = static_cast<int>(gradients_.size());
    gradients_.push_back(torch::from_blob(buckets_.memory(index), parameter.sizes(),
                                          parameter.options().requires_grad(false)));
    parameter.mutable_grad() = gradients_.back();
    // Behind the node that writes the gradient; the parameter's own register_hook runs before it.
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
    accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, index](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          buckets_.ready(index);
          return outputs;
        }));
  }
}

void AveragedGradients::zero() {
  for (torch::Tensor& gradient : gradients_) gradient.zero_();
}

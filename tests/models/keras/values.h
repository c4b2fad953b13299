// Values of tensors of a model, and tensors of plain numbers.
#pragma once

#include <initializer_list>
#include <vector>

#include <kolo/core/graph/inference_form.h>
#include <kolo/models/keras/layer.h>

namespace kolo::keras {

inline Tensor floats(const Shape& shape, std::initializer_list<float> elements) {
  return Tensor::of<float>(shape, elements);
}

inline std::vector<float> elements(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}

/// As in inference.
inline Tensor value(Workspace& workspace, const KerasTensor& of, const KerasTensor& input,
                    const Tensor& fed) {
  Scope s = workspace.scope();
  const Output output = inference_form(s, of.output());
  workspace.initialize_variables();
  return workspace.session().run(output, {{input.output(), fed}});
}

}  // namespace kolo::keras

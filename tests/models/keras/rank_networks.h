// Small networks and samples for trainings on several ranks.
#pragma once

#include <cstdint>

#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/model.h>

namespace kolo::keras {

inline Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }
inline int rank() { return world_group().rank(); }

inline Sequential slope(Workspace& ws, const Optimizer& optimizer) {
  Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "zeros", .input_shape = {1}})});
  net.compile({.optimizer = optimizer, .loss = itself});
  return net;
}

inline Tensor scattered(const Shape& shape, int stride) {
  Tensor tensor(DType::f32, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i * stride % 101) / 50 - 1;
  return tensor;
}

inline Sequential two_layers(Workspace& ws, const Optimizer& optimizer) {
  Sequential net(ws, {Dense(6, {.activation = "tanh", .input_shape = {4}}), Dense(1)});
  net.compile({.optimizer = optimizer, .loss = "mse"});
  return net;
}

}  // namespace kolo::keras

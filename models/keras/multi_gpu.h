// One model on several GPUs of this process: each takes a part of every batch.
#pragma once

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/models/keras/model.h>

namespace kolo::keras {

/// So many, from 0 on; these; or all that the workspace's session has.
struct Gpus {
  Gpus() = default;
  Gpus(int number) : count(number) {}
  Gpus(std::initializer_list<int> numbers) : ids(numbers) {}
  Gpus(std::vector<int> numbers) : ids(std::move(numbers)) {}
  std::optional<int> count = {};
  std::optional<std::vector<int>> ids = {};
};

/// Where the weights of a multi_gpu_model are, and how its results are joined.
struct MultiGpuOptions {
  bool cpu_merge = true;  // results are joined on CPU:0, else on the first GPU
  // The layers get new variables on CPU:0, with the values that they have; models of these layers are then to
  // be compiled again.
  bool cpu_relocation = false;
};

/// A model of the template's inputs and outputs, whose step is computed by a replica on each GPU: replica i
/// of n takes the rows i·⌊batch/n⌋ … of each batch, the last one all that are left. Weights are the
/// template's and stay where it has them, best on CPU:0 (`ws.device("/cpu:0")` while it is built); gradients
/// are added up. Batch normalization takes the statistics of each replica's rows. save writes the template.
///
/// Virtual GPUs count. Throws InvalidArgumentError `For multi-gpu usage to be effective, call
/// `multi_gpu_model` with `gpus >= 2`. Received: `gpus=1``, `To call `multi_gpu_model` with `gpus=4`, we
/// expect the following devices to be available: […]. However this machine only has: […]. Try reducing
/// `gpus`.`, and for a model that is not built.
Model multi_gpu_model(const Model& model, const Gpus& gpus = {}, const MultiGpuOptions& options = {});

}  // namespace kolo::keras

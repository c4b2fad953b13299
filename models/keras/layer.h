// A layer: a function of tensors with weights of its own, that is called when a model is put together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/graph/output.h>
#include <kolo/core/tensor/tensor.h>
#include <kolo/models/keras/weights.h>
#include <kolo/models/keras/workspace.h>

namespace kolo::keras {

/// One number for rows and columns, or two.
struct Pair {
  Pair(std::int64_t both) : rows(both), cols(both) {}
  Pair(std::int64_t of_rows, std::int64_t of_cols) : rows(of_rows), cols(of_cols) {}
  std::int64_t rows;
  std::int64_t cols;
};

/// What layers without arguments of their own take.
struct LayerOptions {
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();  // of a first layer, without the batch
  std::string dtype = {};                     // of its input: "float32"
};

/// A tensor of a model that is being put together: result `index` of one call of a layer. A value, of its
/// workspace.
class KerasTensor {
 public:
  /// With the batch first, −1.
  const Shape& shape() const { return output_.shape(); }
  DType dtype() const { return output_.dtype(); }
  /// In the graph, with training's behaviour.
  Output output() const { return output_; }
  /// "dense_1[0][0]": layer, number of its call, number of the call's result.
  std::string name() const;

  detail::LayerImpl* layer() const { return layer_; }
  int call() const { return call_; }
  int index() const { return index_; }
  bool operator==(const KerasTensor&) const = default;

 private:
  friend class detail::LayerImpl;
  KerasTensor(Output output, detail::LayerImpl* layer, int call, int index)
      : output_(output), layer_(layer), call_(call), index_(index) {}

  Output output_;
  detail::LayerImpl* layer_;
  int call_;
  int index_;
};

/// A handle by value; copies are the same layer, and a layer that is called twice shares its weights. It
/// joins a workspace, and gets its name and weights, when it is first called or added.
class Layer {
 public:
  /// Throws InvalidArgumentError for inputs of another workspace or that do not fit the layer.
  KerasTensor operator()(const KerasTensor& input) const;
  KerasTensor operator()(const std::vector<KerasTensor>& inputs) const;
  /// For layers, that is models, with several results.
  std::vector<KerasTensor> call(const std::vector<KerasTensor>& inputs) const;

  /// "" before it has joined a workspace, unless it was given one.
  const std::string& name() const;
  const std::string& class_name() const;
  bool trainable() const;
  /// Counts at the next compile.
  void set_trainable(bool trainable) const;

  /// Sum of the weights' elements. Throws FailedPreconditionError `This model has not yet been built.`, or
  /// the same of a layer.
  std::int64_t count_params() const;
  /// The weights' values, in the order of the layer's table. Throws as count_params.
  std::vector<Tensor> get_weights() const;
  /// All in place. Throws InvalidArgumentError `You called `set_weights(weights)` on layer "<l>" with a
  /// weight list of length <k>, but the layer was expecting <n> weights`, `Layer weight shape <a> not
  /// compatible with provided weight shape <b>`; nothing is changed then.
  void set_weights(const std::vector<Tensor>& values) const;
  /// "dense_1/kernel", …, in the order of get_weights.
  std::vector<std::string> weight_names() const;

  /// Shape of what the last call gave, the first result. Throws FailedPreconditionError before a call.
  Shape output_shape() const;
  /// Keras' JSON of the arguments, without class_name.
  std::string get_config() const;

  detail::LayerImpl& impl() const { return *impl_; }
  const std::shared_ptr<detail::LayerImpl>& shared() const { return impl_; }
  bool operator==(const Layer& other) const { return impl_ == other.impl_; }

  explicit Layer(std::shared_ptr<detail::LayerImpl> impl) : impl_(std::move(impl)) {}

 protected:
  std::shared_ptr<detail::LayerImpl> impl_;
};

/// Name and type of an Input.
struct InputOptions {
  std::string name = {};
  DType dtype = DType::f32;
};
/// What a model is fed: of this shape, without the batch.
KerasTensor Input(Workspace& workspace, const Shape& shape, const InputOptions& options = {});

}  // namespace kolo::keras

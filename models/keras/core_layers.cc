#include <kolo/models/keras/core_layers.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace {

using detail::CallContext;
using detail::common_of;
using detail::Json;
using detail::LayerImpl;
using detail::RegisterLayer;

class DenseImpl final : public LayerImpl {
 public:
  DenseImpl(std::int64_t units, DenseOptions options)
      : LayerImpl("Dense", common_of(options)), units_(units), options_(std::move(options)) {
    detail::check_activation(options_.activation);
    detail::require_positive("Dense", "units", units);
  }

  Json config() const override {
    Json config = {{"units", units_}};
    detail::write_kernel_options(config, options_);
    return config;
  }
  Regularizer activity_regularizer() const override { return options_.activity_regularizer; }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const std::int64_t in = detail::known_dim(*this, inputs.at(0), -1);
    const Fans fans{static_cast<double>(in), static_cast<double>(units_)};
    kernel_ = add_weight("kernel", {in, units_}, options_.kernel_initializer,
                         {.fans = fans,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint,
                          .norm_axes = {0}});
    if (options_.use_bias)
      bias_ = add_weight("bias", {units_}, options_.bias_initializer,
                         {.regularizer = options_.bias_regularizer, .constraint = options_.bias_constraint});
  }

  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const Shape& shape = inputs[0].shape();
    detail::require_last_dim(*this, shape, kernel_.shape().dim(0));
    Output x = inputs[0];
    if (shape.rank() != 2) x = reshape(c.scope, x, {-1, kernel_.shape().dim(0)});
    Output y = matmul(c.scope, x, kernel_);
    if (bias_) y = bias_add(c.scope, y, bias_);
    if (shape.rank() != 2) y = detail::batched_reshape(c.scope, y, shape.with_dim(-1, units_));
    return {detail::activate(c.scope, options_.activation, y)};
  }

 private:
  std::int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

class FlattenImpl final : public LayerImpl {
 public:
  explicit FlattenImpl(const LayerOptions& options) : LayerImpl("Flatten", common_of(options)) {}
  Json config() const override { return {{"data_format", detail::data_format(*this)}}; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    return {reshape(c.scope, inputs[0], {-1, detail::sample_elements(*this, inputs[0].shape())})};
  }
};

class ReshapeImpl final : public LayerImpl {
 public:
  ReshapeImpl(Shape target, const LayerOptions& options)
      : LayerImpl("Reshape", common_of(options)), target_(std::move(target)) {}
  Json config() const override { return {{"target_shape", target_.dims()}}; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const std::int64_t elements = detail::sample_elements(*this, inputs[0].shape());
    std::vector<std::int64_t> dims = target_.dims();
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    for (std::int64_t& dim : dims) {
      if (dim >= 0) known *= dim;
      else if (open != nullptr) throw InvalidArgumentError("Can only specify one unknown dimension.");
      else open = &dim;
    }
    if (open != nullptr && known > 0) *open = elements / known;
    if (known * (open != nullptr ? *open : 1) != elements)
      throw InvalidArgumentError("total size of new array must be unchanged: layer \"{}\" has {} for {}",
                                 name(), detail::shape_text(inputs[0].shape()), detail::shape_text(target_));
    dims.insert(dims.begin(), -1);
    return {reshape(c.scope, inputs[0], Shape(dims))};
  }

 private:
  Shape target_;
};

class PermuteImpl final : public LayerImpl {
 public:
  PermuteImpl(std::vector<std::int64_t> dims, const LayerOptions& options)
      : LayerImpl("Permute", common_of(options)), dims_(std::move(dims)) {}
  Json config() const override { return {{"dims", dims_}}; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    std::vector<std::int64_t> perm = dims_;
    perm.insert(perm.begin(), 0);
    return {transpose(c.scope, inputs[0], perm)};
  }

 private:
  std::vector<std::int64_t> dims_;
};

class RepeatVectorImpl final : public LayerImpl {
 public:
  RepeatVectorImpl(std::int64_t n, const LayerOptions& options)
      : LayerImpl("RepeatVector", common_of(options)), n_(n) {
    detail::require_positive("RepeatVector", "n", n);
  }
  Json config() const override { return {{"n", n_}}; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    detail::require_rank(*this, inputs[0].shape(), 2);
    return {tile(c.scope, expand_dims(c.scope, inputs[0], 1), {1, n_, 1})};
  }

 private:
  std::int64_t n_;
};

template <typename Options, typename Visit>
void visit_fields(Options& options, const Visit& visit) {
  visit("embeddings_initializer", options.embeddings_initializer);
  visit("embeddings_regularizer", options.embeddings_regularizer);
  visit("activity_regularizer", options.activity_regularizer);
  visit("embeddings_constraint", options.embeddings_constraint);
}

class EmbeddingImpl final : public LayerImpl {
 public:
  EmbeddingImpl(std::int64_t input_dim, std::int64_t output_dim, EmbeddingOptions options)
      : LayerImpl("Embedding", common_of(options)),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(std::move(options)) {
    detail::require_positive("Embedding", "input_dim", input_dim);
    detail::require_positive("Embedding", "output_dim", output_dim);
  }
  Json config() const override {
    Json config = {{"input_dim", input_dim_}, {"output_dim", output_dim_}};
    visit_fields(options_, detail::WriteField{config});
    return config;
  }
  Regularizer activity_regularizer() const override { return options_.activity_regularizer; }
  DType input_dtype() const override { return DType::i32; }

 protected:
  void build(const std::vector<Shape>&) override {
    table_ = add_weight("embeddings", {input_dim_, output_dim_}, options_.embeddings_initializer,
                        {.fans = {static_cast<double>(input_dim_), static_cast<double>(output_dim_)},
                         .regularizer = options_.embeddings_regularizer,
                         .constraint = options_.embeddings_constraint,
                         .norm_axes = {0}});
  }
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const Output ids = is_floating(inputs[0].dtype()) ? cast(c.scope, inputs[0], DType::i32) : inputs[0];
    return {embedding_lookup(c.scope, table_.read(), ids)};
  }

 private:
  std::int64_t input_dim_, output_dim_;
  EmbeddingOptions options_;
  Variable table_;
};

class LambdaImpl final : public LayerImpl {
 public:
  LambdaImpl(LambdaFunction function, std::string function_name, const LayerOptions& options)
      : LayerImpl("Lambda", common_of(options)),
        function_(std::move(function)),
        function_name_(std::move(function_name)) {}
  Json config() const override {
    if (function_name_.empty())
      throw InvalidArgumentError("the Lambda layer \"{}\" cannot be saved: its function has no name", name());
    return {{"function", function_name_}, {"function_type", "function"}};
  }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    Graph& graph = c.scope.graph();
    const std::size_t before = global_variables(graph).size();
    const Output result = function_(c.scope, inputs);
    const auto variables = global_variables(graph);
    if (variables.size() > before)
      throw InvalidArgumentError(
          "the function of the Lambda layer \"{}\" makes the variable \"{}\", which no file would keep; a "
          "layer "
          "with weights derives from OwnLayer",
          name(), variables.back().name());
    return {result};
  }

 private:
  LambdaFunction function_;
  std::string function_name_;
};

const RegisterLayer core_layers[] = {
    {"Dense",
     [](const Json& c) -> Layer {
       auto options = detail::with_common(c, DenseOptions{});
       detail::visit_kernel_fields(options, "kernel", detail::ReadField{c});
       return Dense(c.at("units"), options);
     }},
    {"Flatten", detail::layer_from<Flatten>},
    {"Reshape",
     [](const Json& c) -> Layer {
       return Reshape(Shape(c.at("target_shape").get<std::vector<std::int64_t>>()),
                      detail::with_common(c, LayerOptions{}));
     }},
    {"Permute",
     [](const Json& c) -> Layer { return Permute(c.at("dims"), detail::with_common(c, LayerOptions{})); }},
    {"RepeatVector",
     [](const Json& c) -> Layer { return RepeatVector(c.at("n"), detail::with_common(c, LayerOptions{})); }},
    {"Embedding", [](const Json& c) -> Layer {
       auto options = detail::with_common(c, EmbeddingOptions{});
       visit_fields(options, detail::ReadField{c});
       return Embedding(c.at("input_dim"), c.at("output_dim"), options);
     }}};

}  // namespace

Dense::Dense(std::int64_t units, DenseOptions options)
    : Layer(std::make_shared<DenseImpl>(units, std::move(options))) {}
Flatten::Flatten(const LayerOptions& options) : Layer(std::make_shared<FlattenImpl>(options)) {}
Reshape::Reshape(const Shape& target, const LayerOptions& options)
    : Layer(std::make_shared<ReshapeImpl>(target, options)) {}
Permute::Permute(std::vector<std::int64_t> dims, const LayerOptions& options)
    : Layer(std::make_shared<PermuteImpl>(std::move(dims), options)) {}
RepeatVector::RepeatVector(std::int64_t n, const LayerOptions& options)
    : Layer(std::make_shared<RepeatVectorImpl>(n, options)) {}
Embedding::Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options)
    : Layer(std::make_shared<EmbeddingImpl>(input_dim, output_dim, options)) {}
Lambda::Lambda(LambdaFunction function, std::string function_name, const LayerOptions& options)
    : Layer(std::make_shared<LambdaImpl>(std::move(function), std::move(function_name), options)) {}

}  // namespace kolo::keras

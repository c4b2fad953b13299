// A model's compile and what it does with one batch.
#include <kolo/core/base/error.h>
#include <kolo/models/keras/multi_gpu_internal.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras {
namespace detail {

void ModelImpl::compile(const CompileOptions& options) {
  if (fit_progress() != nullptr)
    throw FailedPreconditionError(
        "compile: a fit of the same model is under way; compile it before or after");
  if (options.precision) workspace().set_precision(*options.precision);
  if (!built_) {
    pending_ = options;
    return;
  }
  take_context(options.context);
  trainer_ = std::make_shared<Trainer>(parallel_ == nullptr ? *this : *parallel_, options);
  pending_.reset();
}

void ModelImpl::take_context(const std::vector<Context>& context) {
  const std::vector<int> gpus = gpus_of(workspace(), context);
  predictor_.reset();
  context_ = context.size() == 1 ? context[0].device() : "";
  parallel_ = nullptr;
  if (context.size() > 1) parallel_ = &multi_gpu_model(Model(shared_from_this()), gpus).model();
}

void ModelImpl::set_replicated(ModelImpl& of, std::string merge_device) {
  template_ = &of;
  merge_device_ = std::move(merge_device);
}

void ModelImpl::forget_compiled() {
  trainer_.reset();
  pending_.reset();
  predictor_.reset();
}

Trainer& ModelImpl::trainer() {
  if (!is_compiled())
    throw FailedPreconditionError(
        "You must compile a model before training/testing. Use `model.compile(optimizer, loss)`.");
  if (pending_) {
    require_built();
    compile(*std::exchange(pending_, std::nullopt));
  }
  return *trainer_;
}

Predictor& ModelImpl::predictor() {
  require_built();
  if (parallel_ != nullptr) return parallel_->predictor();
  if (!predictor_) predictor_ = std::make_shared<Predictor>(*this);
  return *predictor_;
}

void ModelImpl::build_from(const Arrays& x) {
  if (built_ || !sequential_) return;
  const Tensor& first = x.tensor();
  if (first.shape().rank() == 1) build_for({1});
  else build({first.shape()});
}

}  // namespace detail

void Model::compile(const CompileOptions& options) const { model().compile(options); }

std::vector<std::string> Model::metrics_names() const { return model().trainer().metrics_names(); }

const Optimizer& Model::optimizer() const { return model().trainer().options().optimizer; }

std::vector<double> Model::train_on_batch(const Arrays& x, const Arrays& y,
                                          const Arrays& sample_weight) const {
  model().build_from(x);
  detail::Trainer& trainer = model().trainer();
  trainer.warn_of_changed_trainable();
  return trainer.train(trainer.checked(x, y, sample_weight));
}

std::vector<double> Model::test_on_batch(const Arrays& x, const Arrays& y,
                                         const Arrays& sample_weight) const {
  model().build_from(x);
  detail::Trainer& trainer = model().trainer();
  return trainer.test(trainer.checked(x, y, sample_weight));
}

std::vector<Tensor> Model::predict_on_batch(const Arrays& x) const {
  model().build_from(x);
  detail::Predictor& predictor = model().predictor();
  return predictor.predict(detail::standardized(x, predictor.inputs(), "input"));
}

}  // namespace kolo::keras

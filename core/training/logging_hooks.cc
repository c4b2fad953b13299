#include <kolo/core/training/hooks.h>

#include <fmt/format.h>

#include <type_traits>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/global_step.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostElements = 100;
constexpr std::int64_t kDefaultSteps = 100;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// As Python prints it: a number with a point is seen to be no integer.
template <typename T>
std::string text_of(const T& element) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return text_of(static_cast<float>(element));
  } else if constexpr (std::is_same_v<T, bool>) {
    return element ? "True" : "False";
  } else if constexpr (std::is_floating_point_v<T>) {
    std::string text = fmt::format("{}", element);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  } else {
    return fmt::format("{}", element);
  }
}

std::string element_text(const Tensor& value, std::int64_t i) {
  switch (value.dtype()) {
    case DType::f32: return text_of(value.data<float>()[i]);
    case DType::f64: return text_of(value.data<double>()[i]);
    case DType::i32: return text_of(value.data<std::int32_t>()[i]);
    case DType::i64: return text_of(value.data<std::int64_t>()[i]);
    case DType::boolean: return text_of(value.data<bool>()[i]);
    case DType::u8: return text_of(value.data<std::uint8_t>()[i]);
    case DType::i8: return text_of(value.data<std::int8_t>()[i]);
    case DType::f16: return text_of(value.data<Half>()[i]);
    case DType::bf16: return text_of(value.data<BFloat16>()[i]);
    case DType::string: return value.data<std::string>()[i];
  }
  return "";
}

// Of dimensions from `axis` on; `next` is the element that comes next.
std::string nested_text(const Tensor& value, int axis, std::int64_t& next) {
  if (axis == value.shape().rank()) return element_text(value, next++);
  std::string text = "[";
  for (std::int64_t i = 0; i < value.shape().dim(axis); ++i) {
    if (i > 0) text += ' ';
    if (next >= kMostElements) return text + "...]";
    text += nested_text(value, axis + 1, next);
  }
  return text + ']';
}

std::vector<LoggedTensor> under_their_names(const Outputs& tensors) {
  std::vector<LoggedTensor> logged;
  for (const Output& tensor : tensors) logged.push_back({tensor.name(), tensor});
  return logged;
}

StepCounterOptions with_defaults(StepCounterOptions options) {
  if (options.every_n_steps && options.every_n_secs)
    throw InvalidArgumentError("exactly one of every_n_steps and every_n_secs should be provided.");
  if (!options.every_n_steps && !options.every_n_secs) options.every_n_steps = kDefaultSteps;
  return options;
}

}  // namespace

std::string logged_text(const Tensor& value) {
  std::int64_t next = 0;
  return nested_text(value, 0, next);
}

LoggingTensorHook::LoggingTensorHook(std::vector<LoggedTensor> tensors, LoggingTensorOptions options)
    : tensors_(std::move(tensors)), options_(std::move(options)) {
  const bool by_runs = options_.every_n_iter.has_value(), by_time = options_.every_n_secs.has_value();
  if ((by_runs && by_time) || (!by_runs && !by_time && !options_.at_end))
    throw InvalidArgumentError(
        "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.");
  if (by_runs && *options_.every_n_iter <= 0)
    throw InvalidArgumentError("invalid every_n_iter={}.", *options_.every_n_iter);
  if (by_runs || by_time) timer_.emplace(options_.every_n_secs, options_.every_n_iter);
}

LoggingTensorHook::LoggingTensorHook(const Outputs& tensors, LoggingTensorOptions options)
    : LoggingTensorHook(under_their_names(tensors), std::move(options)) {}

void LoggingTensorHook::begin(Graph& graph) {
  for (const auto& [tag, tensor] : tensors_)
    if (!tensor || &tensor.node->graph() != &graph)
      throw InvalidArgumentError("LoggingTensorHook: \"{}\" is no tensor of the graph that is run", tag);
  if (timer_) timer_.emplace(options_.every_n_secs, options_.every_n_iter);
  runs_ = 0;
  last_.reset();
}

std::vector<Fetch> LoggingTensorHook::fetches() const {
  std::vector<Fetch> fetches;
  for (const auto& [tag, tensor] : tensors_) fetches.emplace_back(tensor);
  return fetches;
}

SessionRunArgs LoggingTensorHook::before_run(RunContext&) {
  is_due_ = timer_ && timer_->is_due(runs_);
  SessionRunArgs args;
  if (is_due_) args.fetches = fetches();
  return args;
}

void LoggingTensorHook::after_run(RunContext&, const RunValues& values) {
  if (is_due_) {
    write(values.results);
    timer_->fired(runs_);
  }
  ++runs_;
}

void LoggingTensorHook::end(Session& session) {
  if (options_.at_end) write(session.run(fetches()));
}

void LoggingTensorHook::write(const std::vector<Tensor>& results) {
  const std::string since = last_ ? fmt::format(" ({:.3f} sec)", seconds_since(*last_)) : "";
  last_ = Clock::now();
  if (options_.formatter) {
    std::vector<std::pair<std::string, Tensor>> values;
    for (std::size_t i = 0; i < tensors_.size(); ++i) values.emplace_back(tensors_[i].tag, results.at(i));
    return log_info("{}", options_.formatter(values));
  }
  std::string line;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    line += fmt::format("{}{} = {}", i == 0 ? "" : ", ", tensors_[i].tag, logged_text(results.at(i)));
  log_info("{}{}", line, since);
}

StepCounterHook::StepCounterHook(StepCounterOptions options)
    : options_(with_defaults(std::move(options))), timer_(options_.every_n_secs, options_.every_n_steps) {}

void StepCounterHook::begin(Graph& graph) {
  tag_ = require_global_step(graph, "StepCounterHook").name() + "/sec";
  timer_ = StepTimer(options_.every_n_secs, options_.every_n_steps);
  step_of_last_run_.reset();
}

void StepCounterHook::after_run(RunContext& context, const RunValues&) {
  const std::int64_t step = context.global_step().value();  // there is one, as begin() has seen
  if (step_of_last_run_ == step && warnings_left_ > 0) {
    --warnings_left_;
    log_warning(
        "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could "
        "be stable): {} vs previous value: {}. You could increase the global step by passing "
        "tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize.",
        step, *step_of_last_run_);
  }
  step_of_last_run_ = step;
  if (!timer_.is_due(step)) return;
  if (const std::optional<std::int64_t> before = timer_.last_step()) {
    const double per_second = static_cast<double>(step - *before) / seconds_since(last_time_);
    if (options_.summary_writer) options_.summary_writer->add_summary(scalar_summary(tag_, per_second), step);
    log_info("{}: {:g}", tag_, per_second);
  }
  timer_.fired(step);
  last_time_ = Clock::now();
}

void StepCounterHook::end(Session&) {
  if (options_.summary_writer) options_.summary_writer->flush();
}

}  // namespace kolo

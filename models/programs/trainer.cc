#include <kolo/models/programs/trainer.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/feed_memory.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/batches.h>
#include <kolo/models/layers.h>
#include <kolo/models/prefetch.h>
#include <kolo/models/programs/communication_share_hook.h>
#include <kolo/models/programs/evaluation.h>
#include <kolo/models/programs/event_log.h>
#include <kolo/models/programs/own_gpu.h>
#include <kolo/models/programs/picture_check.h>
#include <kolo/models/programs/profile_hook.h>
#include <kolo/models/programs/progress.h>
#include <kolo/models/programs/rate_scale.h>
#include <kolo/models/programs/recipe.h>
#include <kolo/models/programs/restored_model.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/trace_hook.h>
#include <kolo/models/programs/training_config.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/models/programs/validation_watch.h>
#include <kolo/optimizer/hooks.h>

namespace kolo::models {
namespace {

// Rank 0's, as is the folder. A checkpoint that cannot be read the session will speak of, or find an older
// one.
void check_folder_so_far(const TrainOptions& options) {
  if (options.checkpoint_dir.empty()) return;
  try {
    if (const auto newest = latest_checkpoint(options.checkpoint_dir)) check_fits(options, *newest);
  } catch (const DataLossError&) {
  } catch (const NotFoundError&) {
  }
}

// In the variables there may be --init-from's values by now. Behind the hook that broadcasts.
class StartAveragesHook final : public SessionRunHook {
 public:
  explicit StartAveragesHook(Operation start) : start_(start) {}
  void after_create_session(Session& session) override {
    const Variable step = require_global_step(session.graph(), "StartAveragesHook");
    if (read_global_step(session, step) == 0) session.run(start_);
  }

 private:
  Operation start_;
};

struct TrainingGraph {
  Graph graph;
  Output samples, labels;
  Output weight;       // Batch::weight; empty where it is always 1
  Output rate_factor;  // of RateScale; empty without --scale-rate
  Output loss;         // weighted: its mean over the ranks is that over the samples
  Output inferred;     // the logits of the network in inference
  std::optional<Recipe> recipe;
  AnswerCheck check;
};

void build(TrainingGraph& net, const TrainOptions& options, const TrainingData& data, bool equal_parts,
           std::int64_t last_step) {
  net.graph.set_seed(options.seed);
  Scope s(net.graph);
  net.samples = samples_like(s, data.kind());
  net.labels = labels_like(s, data.kind());
  const Output logits = build_logits(s, options, data.kind(), net.samples, &data);
  net.loss = with_penalties(s, build_loss(s, options, data.kind(), logits, net.labels));
  if (!equal_parts) net.weight = placeholder(s.named("batch_weight"), DType::f32, {});
  if (net.weight) net.loss = mul(s, net.loss, net.weight);
  if (options.scale_rate != RateRule::none)
    net.rate_factor = placeholder(s.named("rate_factor"), DType::f32, {});
  net.inferred = inference_form(s, logits);
  net.check = answer_check(s, options, data.kind(), net.inferred, net.samples, net.labels);
  net.recipe = build_training(s, net.loss, options, last_step, net.rate_factor);
}

// What a step is fed with.
Feeds feeds_of(const TrainingGraph& net, const Batch& batch, const RateScale& scale, std::int64_t step) {
  Feeds feeds = {{net.samples, batch.samples}, {net.labels, batch.labels}};
  if (net.weight) feeds.emplace_back(net.weight, Tensor::scalar(batch.weight));
  if (net.rate_factor) feeds.emplace_back(net.rate_factor, Tensor::scalar(scale.factor(step)));
  return feeds;
}

// A JSON object of texts.
std::map<std::string, std::string> names_from(const std::string& file) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;
  const std::string text = InputFile(file, fmt::format("--init-names {}", file)).read_all(kMostBytes);
  try {
    return nlohmann::json::parse(text).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgumentError(
        "--init-names {}: it must be a JSON object such as {{\"variable\": \"tensor\"}}", file);
  }
}

// Where a schedule ends is kept with the checkpoint: with another --steps its rate jumps.
SavedState state_of_schedule(std::int64_t last_step) {
  return {
      .name = "schedule",
      .save = [last_step] { return std::to_string(last_step); },
      .restore =
          [last_step](const std::string& text) {
            const auto before = parse_int64(text);
            if (process().rank != 0 || !before || *before == last_step) return;
            log_warning(
                "--schedule ends at step {} now and ended at step {} before: the learning rate jumps where "
                "the training goes on",
                last_step, *before);
          }};
}

MonitoredTrainingSessionOptions session_options(const TrainOptions& options, const OwnGpu& gpu,
                                                BatchSource& batches, std::int64_t last_step) {
  MonitoredTrainingSessionOptions session;
  session.checkpoint_dir = options.checkpoint_dir;
  if (options.save_steps) session.save_checkpoint_steps = options.save_steps;
  session.max_to_keep = options.keep;
  session.check_drift_steps = options.check_drift;
  session.config = session_config(options, gpu);
  session.saved_state = {
      {.name = "data",
       .save = [&batches] { return to_json(batches.position()); },
       .restore = [&batches](const std::string& text) { batches.seek(position_from_json(text)); }}};
  if (options.schedule != Schedule::constant) session.saved_state.push_back(state_of_schedule(last_step));
  return session;
}

// Ends the training at a loss that is NaN or infinite, and writes that into the log.
class LoggedNanHook : public NanTensorHook {
 public:
  LoggedNanHook(Output loss, std::function<void()> on_nan)
      : NanTensorHook(loss), on_nan_(std::move(on_nan)) {}
  void after_failure(RunContext& context, const SessionRunArgs& made, const Error& error) override {
    try {
      NanTensorHook::after_failure(context, made, error);
    } catch (const FailedPreconditionError&) {
      on_nan_();
      throw;
    }
  }

 private:
  std::function<void()> on_nan_;
};

}  // namespace

void train(const TrainOptions& options) {
  std::string metrics_file;
  InitialWeights first_weights{.path = options.init_from};
  OwnGpu gpu;
  std::unique_ptr<Batches> own_batches;
  TrainingData data = on_all_ranks([&] {
    gpu = gpu_of_this_rank(options.device);
    metrics_file = log_file(options);
    if (process().rank == 0 && !options.init_names.empty())
      first_weights.names = names_from(options.init_names);
    if (process().rank == 0) check_folder_so_far(options);
    TrainingData loaded = load_training_data(options, true);
    check_samples(options, loaded.kind());
    return loaded;
  });
  check_pictures(options, data);
  on_all_ranks([&] {
    add_statistics(options, data);
    own_batches = std::make_unique<Batches>(data.train, batch_options(options));
    return true;
  });
  if (process().rank == 0) log_info("threads: {}", text_of_threads(options));
  const int passes = options.backward_passes / batch_options(options).passes;  // that Batches do not know
  const bool equal_parts = own_batches->has_equal_parts();
  const std::int64_t global_batch = own_batches->global_batch_size() * passes;
  const std::int64_t epoch = std::max<std::int64_t>(1, own_batches->steps_per_epoch() / passes);
  const std::int64_t last_step = options.steps.value_or(options.epochs * epoch);
  Prefetcher batches(std::move(own_batches));
  std::optional<EventLog> events;
  Progress progress({.prints = process().rank == 0,
                     .json = options.json,
                     .log_file = metrics_file,
                     .data_name = data.kind().name,
                     .label_kind = data.kind().label_kind,
                     .tokens = data.kind().dtype == DType::i32,
                     .ranks = process().size,
                     .global_batch = global_batch,
                     .steps_per_epoch = epoch,
                     .saves = !options.checkpoint_dir.empty(),
                     .last_step = last_step,
                     .log_steps = options.log_steps,
                     .on_row =
                         [&events](const nlohmann::ordered_json& row) {
                           if (events) events->add(row);
                         },
                     .parameters = run_parameters(options, global_batch, last_step)});

  TrainingGraph net;
  shared_errors([&] { build(net, options, data, equal_parts, last_step); });
  RateScale scale({.rule = options.scale_rate,
                   .global_batch = global_batch,
                   .rate = *options.learning_rate,
                   .steps = options.rescale_steps,
                   .batch_of_folder = options.found ? options.found->global_batch : std::nullopt});
  TrainResult result;
  MonitoredTrainingSessionOptions session_settings = session_options(options, gpu, batches, last_step);
  const auto write_config = [&](const std::string& folder) {
    write_folder_config(folder, options, data, global_batch);
  };
  if (net.rate_factor) session_settings.saved_state.push_back(scale.state());
  std::optional<ValidationWatch> watch;
  shared_errors([&] { watch.emplace(options, data, net.inferred, net.recipe->averages, write_config); });
  for (SavedState& state : watch->saved_states()) session_settings.saved_state.push_back(std::move(state));
  session_settings.hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0),
                            std::make_shared<StopAtStepHook>(last_step)};
  for (const Variable& average : net.recipe->averages) first_weights.names.emplace(average.name(), "");
  session_settings.initial_weights = first_weights;
  std::optional<MonitoredTrainingSession> open_session;
  if (net.recipe->start_averages)
    session_settings.hooks.push_back(std::make_shared<StartAveragesHook>(net.recipe->start_averages));
  if (!options.keep_going)
    session_settings.hooks.push_back(std::make_shared<LoggedNanHook>(
        net.loss, [&] { progress.diverged(open_session->global_step() + 1); }));
  if (!options.trace.empty() && process().rank == 0)
    session_settings.hooks.push_back(std::make_shared<TraceHook>(options.trace));
  if (options.profile && process().rank == 0)
    session_settings.hooks.push_back(std::make_shared<ProfileHook>(
        *options.profile,
        [&](const Profile& profile) { progress.profiled(open_session->global_step(), profile); }));
  const auto evaluation = std::make_shared<EvaluationHook>(net.check, data.test, batch_options(options),
                                                           net.recipe->swap_averages);
  session_settings.hooks.push_back(evaluation);

  std::shared_ptr<CommunicationShareHook> communication;
  if (!options.log_dir.empty() && process().size > 1) {
    communication = std::make_shared<CommunicationShareHook>(
        [&] { return progress.is_due(open_session->global_step() + 1); });
    session_settings.hooks.push_back(communication);
  }
  shared_errors([&] { open_session.emplace(net.graph, session_settings); });
  batches.read_into(feed_memory(open_session->session()));
  const bool writes_config = process().rank == 0 && !options.checkpoint_dir.empty();
  shared_errors([&] {
    if (writes_config) write_inference_graph(options.checkpoint_dir, {net.inferred});
    if (writes_config && !options.found) write_config(options.checkpoint_dir);
  });
  MonitoredTrainingSession& session = *open_session;
  const auto current_step = [&] { return session.global_step(); };
  if (writes_config && current_step() >= last_step)
    log_info("nothing left to do: {} is at step {} of {}", options.checkpoint_dir, current_step(),
             options.steps ? fmt::format("--steps {}", last_step)
                           : fmt::format("{}, where --epochs {} ends; epochs count from step 0", last_step,
                                         options.epochs));
  const auto is_on_grid = [&](std::int64_t step) {
    return options.validate_every && step % *options.validate_every == 0;
  };
  // A step is saved before it is evaluated.
  if (current_step() > 0 && current_step() < last_step && is_on_grid(current_step()) &&
      watch->misses(current_step()))
    if (const auto found = evaluation->evaluate(session.session()))
      watch->note(session.session(), current_step(), *found, true);
  if (writes_config && current_step() < last_step && !watch->why_to_stop().empty())
    log_info("nothing left to do: {} has ended at step {}, {}", options.checkpoint_dir, current_step(),
             watch->why_to_stop());
  if (process().rank == 0 && !options.tensorboard.empty())
    events.emplace(options.tensorboard, net.graph, current_step(), options.histogram_steps);
  if (net.rate_factor) scale.start(current_step());
  progress.start(current_step());
  const auto fixed_rate = net.recipe->learning_rate.number();
  std::vector<Fetch> fetches = {net.loss, net.recipe->train_op};
  if (!fixed_rate)
    fetches.emplace_back(net.recipe->learning_rate.in_graph(Scope(net.graph), DType::f32, "rate"));
  Batch batch;
  double own_loss = 0;
  bool made_steps = false;
  while (current_step() < last_step && !session.should_stop() && watch->why_to_stop().empty()) {
    batches.next(batch);
    const std::int64_t before = current_step();
    const auto values = session.run(fetches, feeds_of(net, batch, scale, before));
    if (!values[0]) break;  // another rank's data ended: the step was applied nowhere
    own_loss = values[0].value<float>();
    made_steps = true;
    if (current_step() == before) continue;  // more batches belong to this step
    if (progress.is_due(current_step()))
      progress.step(current_step(), own_loss, fixed_rate ? *fixed_rate : values.back().value<float>(),
                    communication ? communication->share() : std::nullopt);
    const bool is_last = current_step() >= last_step;  // of which the end tells
    if (options.validate_every && (is_last ? watch->keeps() : is_on_grid(current_step())))
      if (const auto found = evaluation->evaluate(session.session())) {
        if (!is_last) progress.validated(current_step(), *found);
        watch->note(session.session(), current_step(), *found, is_on_grid(current_step()));
      }
    if (events) events->add_weights(session.session(), current_step());
  }
  if (const std::string why = watch->why_to_stop(); made_steps && !why.empty() && current_step() < last_step)
    progress.stopped_early(current_step(), why);
  result.global_step = current_step();
  progress.stop(result.global_step);
  if (made_steps) result.loss = mean_over_ranks(own_loss);
  result.stopped_on_request = session.stopped_on_request();
  evaluation->skip(result.stopped_on_request);
  session.close();  // saves, then evaluates: a kill during the evaluation loses nothing
  // What this start has changed is true of the folder now that its last step is saved.
  if (writes_config && made_steps) write_config(options.checkpoint_dir);
  result.test = evaluation->result();
  progress.done(result);
  if (events) events->close();
}

}  // namespace kolo::models

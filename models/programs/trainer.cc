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
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/batches.h>
#include <kolo/models/prefetch.h>
#include <kolo/models/programs/communication_share_hook.h>
#include <kolo/models/programs/data_warnings.h>
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
#include <kolo/models/programs/skip_hint.h>
#include <kolo/models/programs/trace_hook.h>
#include <kolo/models/programs/training_config.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/models/programs/training_graph.h>
#include <kolo/models/programs/training_place.h>
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

// Of rank 0, before its first checkpoint: who finds one finds beside it what it is. The session has locked
// the folder.
class FillFolderHook final : public SessionRunHook {
 public:
  explicit FillFolderHook(std::function<void()> fill) : fill_(std::move(fill)) {}
  void after_create_session(Session&) override { fill_(); }

 private:
  const std::function<void()> fill_;
};

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

// One training, from its options to its last line.
class TrainingRun {
 public:
  explicit TrainingRun(const TrainOptions& options)
      : options_(options), writes_folder_(process().rank == 0 && !options.checkpoint_dir.empty()) {}

  void run() {
    load();
    start(place_in(options_.checkpoint_dir, data_->train->size()));
    check_start();
    batches_->read_for(session_->session());
    catch_up();
    begin();
    take_steps();
    close();
  }

 private:
  void load();
  ProgressOptions progress_options();
  void start(const TrainingPlace& place);
  void check_start();
  void open();
  void fill_folder();
  MonitoredTrainingSessionOptions settings();
  void add_watching_hooks(std::vector<std::shared_ptr<SessionRunHook>>& hooks);
  void write_config(const std::string& folder) const {
    write_folder_config(folder, options_, *data_, global_batch_);
  }
  void catch_up();
  void begin();
  void take_steps();
  void look_at_step(double rate);
  void close();

  std::int64_t step() const { return session_->global_step(); }
  bool is_on_grid() const { return options_.validate_every && step() % *options_.validate_every == 0; }

  const TrainOptions& options_;
  const bool writes_folder_;
  OwnGpu gpu_;
  std::string metrics_file_;
  InitialWeights first_weights_;
  std::optional<TrainingData> data_;
  bool equal_parts_ = true;
  bool as_pixels_ = false;  // samples, until they are on a GPU: on a CPU they are divided where they are read
  std::int64_t global_batch_ = 0, last_step_ = 0;
  EpochCount epochs_;
  TrainingPlace place_;  // where it starts
  std::optional<Prefetcher> batches_;
  std::optional<EventLog> events_;
  std::optional<Progress> progress_;
  std::optional<TrainingGraph> net_;
  std::optional<RateScale> scale_;
  std::optional<ValidationWatch> watch_;
  std::shared_ptr<EvaluationHook> evaluation_;
  std::shared_ptr<CommunicationShareHook> communication_;
  std::optional<MonitoredTrainingSession> session_;
  std::optional<double> own_loss_;  // of the last step
  bool made_steps_ = false;
};

// The samples, and all that can be wrong before there is a graph.
void TrainingRun::load() {
  first_weights_.path = options_.init_from;
  data_ = on_all_ranks([&] {
    gpu_ = gpu_of_this_rank(options_.device);
    metrics_file_ = log_file(options_);
    if (process().rank == 0 && !options_.init_names.empty())
      first_weights_.names = names_from(options_.init_names);
    if (process().rank == 0) check_folder_so_far(options_);
    TrainingData loaded = load_training_data(options_, true);
    check_samples(options_, loaded.kind());
    return loaded;
  });
  warn_of_data(options_, *data_);
  check_pictures(options_, *data_);
  // Graphs are alike on all ranks.
  const auto gpus = world_group().allgather(gpu_.list);
  as_pixels_ = std::none_of(gpus.begin(), gpus.end(), [](const std::string& gpu) { return gpu.empty(); });
  std::unique_ptr<Batches> batches;
  on_all_ranks([&] {
    add_statistics(options_, *data_);
    BatchOptions batching = batch_options(options_);
    batching.as_pixels = as_pixels_;
    batches = std::make_unique<Batches>(data_->train, batching);
    return true;
  });
  if (process().rank == 0) log_info("threads: {}", text_of_threads(options_));
  const int passes = options_.backward_passes / batch_options(options_).passes;  // that Batches do not know
  equal_parts_ = batches->has_equal_parts();
  global_batch_ = batches->global_batch_size() * passes;
  epochs_ = EpochCount(batches->shares(), passes);
  batches_.emplace(std::move(batches));
}

// The graph, in which a schedule knows the last step, and a session with it.
void TrainingRun::start(const TrainingPlace& place) {
  session_.reset();
  place_ = place;
  last_step_ = options_.steps.value_or(epochs_.last_step(place, options_.epochs));
  if (process().rank == 0 && options_.warmup > last_step_ && place.step < last_step_)
    log_warning("--warmup {}: the training ends at step {}, before the rate is what it is to be",
                options_.warmup, last_step_);
  shared_errors([&] { net_.emplace(options_, *data_, equal_parts_, as_pixels_, last_step_); });
  open();
}

// The session restores the newest checkpoint that is intact, and another process may just have saved one.
void TrainingRun::check_start() {
  const TrainingPlace restored{step(), batches_->position()};
  if (restored.step == place_.step && epochs_.is_at(place_, *restored.position)) return;
  if (options_.steps || epochs_.last_step(restored, options_.epochs) == last_step_) place_ = restored;
  else start(restored);
}

MonitoredTrainingSessionOptions TrainingRun::settings() {
  MonitoredTrainingSessionOptions made = session_options(options_, gpu_, *batches_, last_step_);
  if (net_->rate_factor) made.saved_state.push_back(scale_->state());
  for (SavedState& state : watch_->saved_states()) made.saved_state.push_back(std::move(state));
  made.hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0),
                std::make_shared<StopAtStepHook>(last_step_)};
  if (writes_folder_)
    made.chief_only_hooks.push_back(std::make_shared<FillFolderHook>([this] { fill_folder(); }));
  for (const Variable& average : net_->recipe->averages) first_weights_.names.emplace(average.name(), "");
  made.initial_weights = first_weights_;
  if (net_->recipe->start_averages)
    made.hooks.push_back(std::make_shared<StartAveragesHook>(net_->recipe->start_averages));
  add_watching_hooks(made.hooks);
  return made;
}

// Hooks that change nothing. They ask for the step when there is a session.
void TrainingRun::add_watching_hooks(std::vector<std::shared_ptr<SessionRunHook>>& hooks) {
  if (!options_.keep_going)
    hooks.push_back(std::make_shared<LoggedNanHook>(net_->loss, [this] { progress_->diverged(step() + 1); }));
  if (!options_.trace.empty() && process().rank == 0)
    hooks.push_back(std::make_shared<TraceHook>(options_.trace));
  if (options_.profile && process().rank == 0)
    hooks.push_back(std::make_shared<ProfileHook>(
        *options_.profile, [this](const Profile& profile) { progress_->profiled(step(), profile); }));
  hooks.push_back(evaluation_);
  if (options_.log_dir.empty() || process().size == 1) return;
  communication_ = std::make_shared<CommunicationShareHook>([this] { return progress_->is_due(step() + 1); });
  hooks.push_back(communication_);
}

// The session, which restores what is there, and the folder's description.
void TrainingRun::open() {
  progress_.emplace(progress_options());
  scale_.emplace(
      RateScale::Options{.rule = options_.scale_rate,
                         .global_batch = global_batch_,
                         .rate = *options_.learning_rate,
                         .steps = options_.rescale_steps,
                         .batch_of_folder = options_.found ? options_.found->global_batch : std::nullopt});
  shared_errors([&] {
    watch_.emplace(options_, *data_, net_->inferred, net_->images, net_->recipe->averages,
                   [this](const std::string& folder) { write_config(folder); });
  });
  evaluation_ = std::make_shared<EvaluationHook>(net_->check, data_->test, batch_options(options_),
                                                 net_->recipe->swap_averages, options_.checkpoint_dir);
  const MonitoredTrainingSessionOptions made = settings();
  shared_errors([&] { session_.emplace(net_->graph, made); });
}

// What stands there beside the checkpoints.
void TrainingRun::fill_folder() {
  write_inference_graph(options_.checkpoint_dir, {net_->inferred}, {net_->images});
  if (!options_.found) write_config(options_.checkpoint_dir);
}

ProgressOptions TrainingRun::progress_options() {
  return {.prints = process().rank == 0,
          .json = options_.json,
          .log_file = metrics_file_,
          .data_name = data_->kind().name,
          .test_name = data_->test ? data_->test->kind().name : "",
          .label_kind = data_->kind().label_kind,
          .tokens = data_->kind().dtype == DType::i32,
          .ranks = process().size,
          .global_batch = global_batch_,
          .epochs = [this] { return epochs_.done({.position = batches_->position()}, place_); },
          .saves = !options_.checkpoint_dir.empty(),
          .last_step = last_step_,
          .log_steps = options_.log_steps,
          .on_row =
              [this](const nlohmann::ordered_json& row) {
                if (events_) events_->add(row);
              },
          .parameters = run_parameters(options_, global_batch_, last_step_)};
}

// What an earlier start has left undone, or why nothing is left to do.
void TrainingRun::catch_up() {
  if (writes_folder_ && step() >= last_step_)
    log_info("nothing left to do: {} {}", options_.checkpoint_dir,
             options_.steps ? fmt::format("is at step {} of --steps {}", step(), last_step_)
                            : epochs_.text(place_, options_.epochs));
  if (writes_folder_ && step() == 0)
    if (const auto names = list_checkpoints(options_.checkpoint_dir);
        !names.empty() && names.front() != fmt::format("{}-0", kCheckpointBasename))
      log_warning("{}: no checkpoint of a later step is intact, and the training begins again at step 0",
                  options_.checkpoint_dir);
  // A step is saved before it is evaluated.
  if (step() > 0 && step() < last_step_ && is_on_grid() && watch_->misses(step()))
    if (const auto found = evaluation_->evaluate(session_->session()))
      watch_->note(session_->session(), step(), *found, true);
  if (writes_folder_ && step() < last_step_ && !watch_->why_to_stop().empty())
    log_info("nothing left to do: {} has ended at step {}, {}", options_.checkpoint_dir, step(),
             watch_->why_to_stop());
}

void TrainingRun::begin() {
  if (process().rank == 0 && !options_.tensorboard.empty())
    events_.emplace(options_.tensorboard, net_->graph, step(), options_.histogram_steps);
  if (net_->rate_factor) scale_->start(step());
  progress_->start(step());
}

void TrainingRun::take_steps() {
  const auto fixed_rate = net_->recipe->learning_rate.number();
  std::vector<Fetch> fetches = {net_->loss, net_->recipe->train_op};
  if (!fixed_rate)
    fetches.emplace_back(net_->recipe->learning_rate.in_graph(Scope(net_->graph), DType::f32, "rate"));
  Batch batch;
  double of_passes = 0;
  int passes = 0;  // of the step so far
  while (step() < last_step_ && !session_->should_stop() && watch_->why_to_stop().empty()) {
    with_skip_hint(data_->kind(), [&] { batches_->next(batch); });
    const std::int64_t before = step();
    const auto values = session_->run(fetches, net_->feeds(batch, *scale_, before));
    if (!values[0]) break;  // another rank's data ended: the step was applied nowhere
    made_steps_ = true;
    of_passes += values[0].value<float>();
    ++passes;
    if (step() == before) continue;  // more batches belong to this step
    own_loss_ = std::exchange(of_passes, 0) / std::exchange(passes, 0);
    look_at_step(fixed_rate ? *fixed_rate : values.back().value<float>());
  }
}

void TrainingRun::look_at_step(double rate) {
  if (progress_->is_due(step()))
    progress_->step(step(), *own_loss_, rate, communication_ ? communication_->share() : std::nullopt);
  const bool is_last = step() >= last_step_;  // of which the end tells
  if (options_.validate_every && (is_last ? watch_->keeps() : is_on_grid()))
    if (const auto found = evaluation_->evaluate(session_->session())) {
      if (!is_last) progress_->validated(step(), *found);
      watch_->note(session_->session(), step(), *found, is_on_grid());
    }
  if (events_) events_->add_weights(session_->session(), step());
}

void TrainingRun::close() {
  if (const std::string why = watch_->why_to_stop(); made_steps_ && !why.empty() && step() < last_step_)
    progress_->stopped_early(step(), why);
  TrainResult result;
  result.global_step = step();
  progress_->stop(result.global_step);
  if (own_loss_) result.loss = mean_over_ranks(*own_loss_);
  result.stopped_on_request = session_->stopped_on_request();
  evaluation_->skip(result.stopped_on_request);
  session_->close();  // saves, then evaluates: a kill during the evaluation loses nothing
  // What this start has changed is true of the folder now that its last step is saved.
  if (writes_folder_ && made_steps_) write_config(options_.checkpoint_dir);
  result.test = evaluation_->result();
  progress_->done(result);
  if (events_) events_->close();
}

}  // namespace

void train(const TrainOptions& options) { TrainingRun(options).run(); }

}  // namespace kolo::models

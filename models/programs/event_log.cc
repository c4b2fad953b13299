#include <kolo/models/programs/event_log.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/summary/summary_writer.h>

namespace kolo::models {

EventLog::EventLog(const std::string& folder, const Graph& graph, std::int64_t first_step,
                   std::int64_t histogram_steps)
    : writer_(folder), weights_(trainable_variables(graph)), histogram_steps_(histogram_steps) {
  writer_.add_graph(graph, first_step);
  // What a run before has written beyond this step is not of this one.
  writer_.add_session_log(SessionStatus::start, first_step);
}

void EventLog::write(const std::function<void()>& action) {
  if (has_failed_) return;
  try {
    action();
  } catch (const Error& error) {
    has_failed_ = true;
    log_warning("--tensorboard: no more events are written: {}", error.what());
  }
}

void EventLog::close() {
  write([&] { writer_.close(); });
}

void EventLog::add(const nlohmann::ordered_json& row) {
  write([&] {
    for (const char* name : {"loss", "learning_rate", "samples_per_s", "test_loss", "test_accuracy",
                             "test_exact_match", "test_mae", "test_rmse", "test_r2"}) {
      const auto value = row.find(name);
      if (value == row.end() || !value->is_number()) continue;
      writer_.add_summary(scalar_summary(name, *value), row.at("global_step").get<std::int64_t>());
    }
    writer_.flush();
  });
}

void EventLog::add_weights(Session& session, std::int64_t step) {
  if (has_failed_ || histogram_steps_ == 0 || step % histogram_steps_ != 0) return;
  std::vector<Fetch> fetches;
  for (const Variable& weight : weights_) fetches.emplace_back(weight.read());
  const auto values = session.run(fetches);
  write([&] {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      try {
        writer_.add_summary(histogram_summary(weights_[i].name(), values[i]), step);
      } catch (const InvalidArgumentError& not_finite) {  // --keep-going trains on with them
        log_warning("--tensorboard: step {}: {}", step, not_finite.what());
      }
    }
    writer_.flush();
  });
}

}  // namespace kolo::models

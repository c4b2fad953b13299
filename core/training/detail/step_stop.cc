#include <kolo/core/training/detail/step_stop.h>

#include <algorithm>
#include <utility>

namespace kolo::detail {

StepStop::StepStop(std::vector<std::shared_ptr<StepAgreement>> agreements, int ranks) {
  if (ranks == 1) return;
  // Nodes of one schedule share its agreement.
  for (auto& agreement : agreements)
    if (std::find(agreements_.begin(), agreements_.end(), agreement) == agreements_.end())
      agreements_.push_back(std::move(agreement));
}

void StepStop::compare() {
  for (const auto& agreement : agreements_) agreement->compare();
}

void StepStop::set_step(std::int64_t step) {
  for (const auto& agreement : agreements_) agreement->set_step(step);
}

void StepStop::ask() {
  if (std::exchange(asked_, true)) return;
  for (const auto& agreement : agreements_) agreement->request_stop();
}

bool StepStop::is_agreed() const {
  return std::any_of(agreements_.begin(), agreements_.end(), [](const auto& agreement) {
    const StepVerdict verdict = agreement->last_step();
    return verdict.stop || verdict.end_of_data;
  });
}

void StepStop::ask_to_save() {
  for (const auto& agreement : agreements_) agreement->request_save();
}

bool StepStop::take_save() {
  bool agreed = false;
  for (const auto& agreement : agreements_) agreed = agreement->take_save() || agreed;
  return agreed;
}

void StepStop::end_of_data() {
  // A graph with several schedules runs them in the order in which it holds them: the others come to the
  // first one.
  if (!is_alone() && !is_agreed()) agreements_.front()->end_of_data();
}

void StepStop::fail(const std::string& text) {
  if (is_agreed()) return;  // the others have left
  for (const auto& agreement : agreements_) agreement->fail(text);
}

}  // namespace kolo::detail

#include <kolo/core/training/step_stop.h>

#include <algorithm>
#include <utility>

namespace kolo::detail {
namespace {

bool has_ended(const StepAgreement& agreement) {
  const StepVerdict verdict = agreement.last_step();
  return verdict.stop || verdict.end_of_data;
}

// True if every rank of `inner` is one of `outer`.
bool covers(const StepAgreement& outer, const StepAgreement& inner) {
  const std::vector<int> all = outer.ranks(), some = inner.ranks();
  if (all.empty() || some.empty()) return all.empty();
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

StepStop::StepStop(std::vector<std::shared_ptr<StepAgreement>> agreements, int ranks) {
  if (ranks == 1) return;
  // Nodes of one schedule share its agreement.
  for (auto& agreement : agreements)
    if (std::find(agreements_.begin(), agreements_.end(), agreement) == agreements_.end())
      agreements_.push_back(std::move(agreement));
}

std::map<std::vector<int>, int> StepStop::count_by_ranks() const {
  std::map<std::vector<int>, int> count;
  for (const auto& agreement : agreements_) ++count[agreement->ranks()];
  return count;
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
  return std::any_of(agreements_.begin(), agreements_.end(),
                     [](const auto& agreement) { return has_ended(*agreement); });
}

bool StepStop::is_end_of_data() const {
  return std::any_of(agreements_.begin(), agreements_.end(),
                     [](const auto& agreement) { return agreement->last_step().end_of_data; });
}

bool StepStop::is_agreed_by_all() const {
  return std::any_of(agreements_.begin(), agreements_.end(), [](const auto& agreement) {
    return agreement->ranks().empty() && has_ended(*agreement);
  });
}

// From another schedule, if not from this one.
bool StepStop::all_know(const StepAgreement& agreement) const {
  return std::any_of(agreements_.begin(), agreements_.end(),
                     [&](const auto& other) { return has_ended(*other) && covers(*other, agreement); });
}

void StepStop::ask_to_save() {
  for (const auto& agreement : agreements_)
    if (agreement->ranks().empty()) agreement->request_save();
}

bool StepStop::take_save() {
  bool agreed = false;
  for (const auto& agreement : agreements_)
    if (agreement->ranks().empty()) agreed = agreement->take_save() || agreed;
  return agreed;
}

void StepStop::end_of_data() {
  // A graph with several schedules runs them in the order in which it holds them: the others come to the
  // first one. Those of more ranks first: who hears of the end there need not hear of it twice.
  std::vector<StepAgreement*> told;
  for (const bool of_all : {true, false})
    for (const auto& agreement : agreements_) {
      const bool known = all_know(*agreement) ||
                         std::any_of(told.begin(), told.end(),
                                     [&](const StepAgreement* other) { return covers(*other, *agreement); });
      if (agreement->ranks().empty() != of_all || known) continue;
      agreement->end_of_data();
      told.push_back(agreement.get());
    }
}

void StepStop::fail(const std::string& text) {
  for (const auto& agreement : agreements_)
    if (!all_know(*agreement)) agreement->fail(text);  // else the others have left
}

}  // namespace kolo::detail

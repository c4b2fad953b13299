#include <kolo/models/keras/fit.h>

#include <algorithm>

#include <kolo/core/base/error.h>

namespace kolo::keras {

std::optional<double> Logs::find(const std::string& name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return value;
  return {};
}

void Logs::set(const std::string& name, double value) {
  for (auto& [key, old] : entries_) {
    if (key != name) continue;
    old = value;
    return;
  }
  entries_.emplace_back(name, value);
}

std::string Logs::names() const {
  std::string text;
  for (const auto& [key, value] : entries_) text += (text.empty() ? "" : ",") + key;
  return text;
}

const std::vector<double>& History::operator[](const std::string& name) const {
  for (const auto& [key, values] : history)
    if (key == name) return values;
  throw NotFoundError("the history has no \"{}\"", name);
}

void History::on_train_begin(Logs&) {
  epoch.clear();
  history.clear();
}

void History::on_epoch_end(std::int64_t ended, Logs& logs) {
  epoch.push_back(ended);
  for (const auto& entry : logs.entries()) {
    auto found = std::find_if(history.begin(), history.end(),
                              [&](const auto& known) { return known.first == entry.first; });
    if (found == history.end()) found = history.insert(history.end(), {entry.first, {}});
    found->second.push_back(entry.second);
  }
}

Shuffle::Shuffle(const char* text) : of_samples(false), of_batches(std::string(text) == "batch") {
  if (!of_batches) throw InvalidArgumentError("shuffle is \"{}\"; it is true, false or \"batch\"", text);
}

}  // namespace kolo::keras

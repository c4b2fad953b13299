#include <kolo/models/programs/kept_switches.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/models/programs/losses.h>

namespace kolo::models {
namespace {

constexpr std::array kNotKept = {
    "length",         "output",      "predict",         "prompt",  "temperature", "top",        "check-drift",
    "checkpoint-dir", "device",      "evaluate",        "help",    "init-from",   "init-names", "json",
    "keep-going",     "tensorboard", "histogram-steps", "log-dir", "log-steps",   "profile",    "threads",
    "trace",          "version"};

// What a training that goes on learns by.
constexpr std::array kOfTraining = {
    "augment",   "average-decay", "backward-passes", "batch-size",    "clip-norm",
    "epoch-end", "global-batch",  "scale-rate",      "rescale-steps", "compression",
    "data",      "learning-rate", "momentum",        "optimizer",     "precision",
    "schedule",  "sharded",       "warmup",          "weight-decay"};

// Two ways to say one thing: who gives the first has no use for the folder's second.
constexpr std::pair<const char*, const char*> kInsteadOf[] = {
    {"steps", "epochs"}, {"epochs", "steps"}, {"batch-size", "global-batch"}, {"global-batch", "batch-size"}};

template <typename Names>
bool is_among(const Names& names, const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// "08" is 8, and 1e-3 is 0.001.
bool is_same(const std::string& a, const std::string& b) {
  const auto x = parse_double(a), y = parse_double(b);
  return a == b || (x && y && *x == *y);
}

// Absolute, and without a slash at its end, which Tab adds behind a folder.
std::string kept_path(const std::string& data) {
  if (data == "generated") return data;
  const std::filesystem::path path = std::filesystem::absolute(data).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

[[noreturn]] void refuse(const std::string& name, const std::string& value, const FolderConfig& folder,
                         const std::string& trained) {
  throw UsageError(fmt::format("--{}{}{}: the model in {} {}; leave the switch out, or take another folder",
                               name, value.empty() ? "" : " ", value, folder.folder, trained));
}

void check_given(const FolderConfig& folder, const Switches& given) {
  if (const auto model = given.find("model"); model != given.end() && model->second != folder.model)
    refuse("model", model->second, folder, "is " + folder.model);
  for (const auto& [name, size] : folder.sizes)
    if (const auto other = given.find(name); other != given.end() && parse_int64(other->second) != size)
      refuse(name, other->second, folder, fmt::format("has {}", size));
  // They decide what the columns of a table mean, which is kept with the weights.
  for (const char* const name : {"target", "ignore", "missing"}) {
    const auto other = given.find(name), trained = folder.switches.find(name);
    if (other == given.end()) continue;
    if (trained == folder.switches.end()) refuse(name, other->second, folder, "was trained without it");
    if (other->second != trained->second)
      refuse(name, other->second, folder, fmt::format("was trained with --{} {}", name, trained->second));
  }
  const auto loss = given.find("loss");
  const Loss* const named = loss == given.end() ? nullptr : find_loss(loss->second);
  if (named != nullptr && named->of != folder.label_kind)
    refuse("loss", loss->second, folder, fmt::format("finds {}", plural_of(folder.label_kind)));
  if (given.contains("normalize") && !folder.normalize)
    refuse("normalize", "", folder, "was trained without it");
}

void say(const std::string& line) {
  if (process().rank == 0) log_warning("{}", line);
}

std::string option_text(const std::string& name, const std::string& value) {
  return value.empty() ? "--" + name : fmt::format("--{} {}", name, value);
}

// What the folder was trained with, given or not; nothing where it knows of none.
std::optional<std::string> as_trained(const FolderConfig& folder, const std::string& name) {
  for (const auto* known : {&folder.switches, &folder.used})
    if (const auto found = known->find(name); found != known->end()) return found->second;
  return std::nullopt;
}

// One line for a switch of this start that differs from the folder's. given: as it was written.
void say_what_changes(const FolderConfig& folder, const std::string& name, const std::string& value,
                      const Switches& given, bool evaluates) {
  if (name == "seed") return;
  const std::string written = option_text(name, given.at(name));
  for (const auto& [first, second] : kInsteadOf) {
    const auto replaced = folder.switches.find(second);
    if (name != first || folder.switches.contains(first) || replaced == folder.switches.end()) continue;
    return say(fmt::format("{} takes the place of {}, with which {} was trained", written,
                           option_text(second, replaced->second), folder.folder));
  }
  // What nobody chose is no choice that an evaluation could differ from.
  const bool is_known = !evaluates || folder.switches.contains(name);
  if (const auto trained = as_trained(folder, name); trained && is_known) {
    if (name == "data" ? !is_same_data(value, *trained) : !is_same(value, *trained))
      say(fmt::format("{} takes the place of {}, with which {} was trained", written, *trained,
                      folder.folder));
  } else if (!evaluates && is_among(kOfTraining, name)) {
    say(fmt::format("{} applies from this start on: {} was trained without it before", written,
                    folder.folder));
  }
}

}  // namespace

Switches kept_switches(const Switches& given) {
  Switches kept;
  for (const auto& [name, value] : given)
    if (!is_among(kNotKept, name)) kept.emplace(name, value);
  if (const auto data = kept.find("data"); data != kept.end()) data->second = kept_path(data->second);
  return kept;
}

bool is_same_data(const std::string& a, const std::string& b) {
  if (kept_path(a) == kept_path(b)) return true;  // which need not be there any more
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

bool can_end(const std::string& name) { return is_among(kSwitchesThatEnd, name); }

Switches added_switches(const FolderConfig& folder, const Switches& given,
                        const std::vector<std::string>& ended) {
  check_given(folder, given);
  const Switches own = kept_switches(given);
  const bool evaluates = given.contains("evaluate") || given.contains("predict") || given.contains("prompt");
  Switches added;
  for (const auto& [name, size] : folder.sizes)
    if (!own.contains(name)) added[name] = std::to_string(size);
  for (const auto& [name, value] : folder.switches) {
    if (is_among(kNotKept, name) || (evaluates && is_among(kTrainingSwitches, name)) || name == "seed")
      continue;
    if (given.contains("predict") && name == "skip-damaged") continue;  // each prediction has its own choice
    if (is_among(ended, name))
      say(fmt::format("--no-{}: {} goes on without {}, with which it was trained", name, folder.folder,
                      option_text(name, value)));
    else if (!own.contains(name)) added.emplace(name, value);
  }
  for (const auto& [name, value] : own)
    if (!evaluates || !is_among(kTrainingSwitches, name))
      say_what_changes(folder, name, value, given, evaluates);
  for (const auto& [first, second] : kInsteadOf)
    if (own.contains(first)) added.erase(second);
  if (const auto rule = own.find("scale-rate"); rule != own.end() && rule->second == "none")
    added.erase("rescale-steps");
  const auto optimizer = own.find("optimizer");
  const auto trained = as_trained(folder, "optimizer");
  if (optimizer != own.end() && trained && *trained != optimizer->second)
    for (const char* name :
         {"learning-rate", "momentum", "weight-decay"})  // another one's, none for this one
      if (const auto kept = added.find(name); kept != added.end()) {
        say(fmt::format("--optimizer {}: {} of {} is not taken over, and the optimizer's own default applies",
                        optimizer->second, option_text(name, kept->second), folder.folder));
        added.erase(kept);
      }
  if (evaluates) return added;
  const auto seed = own.find("seed");
  if (seed != own.end() && parse_int64(seed->second) != folder.seed)
    say(fmt::format("--seed {} takes no effect: {} goes on with the seed {}", seed->second, folder.folder,
                    folder.seed));
  added["seed"] = std::to_string(folder.seed);
  return added;
}

}  // namespace kolo::models

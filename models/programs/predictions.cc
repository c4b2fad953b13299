#include <kolo/models/programs/predictions.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/activations.h>
#include <kolo/models/data.h>
#include <kolo/models/programs/restored_model.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/training_config.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/models/read_ahead.h>

namespace kolo::models {
namespace {

struct Guess {
  std::string name;  // of the class
  double share = 0;
};

std::vector<Guess> largest(std::span<const float> shares, std::int64_t top, const SampleKind& kind) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min(static_cast<std::size_t>(top), order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::size_t a, std::size_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i)
    guesses.push_back(
        {kind.class_name(static_cast<std::int64_t>(order[i])), std::round(shares[order[i]] * 1e6) / 1e6});
  return guesses;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

enum class Form { plain, csv, json };

// The numbers that a model for regression finds.
std::string line_of_numbers(const std::string& name, std::span<const float> numbers, Form form) {
  if (form == Form::json) {
    nlohmann::ordered_json row = {{"name", name}};
    for (const float number : numbers) row["numbers"].push_back(double{number});
    return json_text(row) + "\n";
  }
  std::string line = form == Form::csv ? csv_field(name) : name;
  for (const float number : numbers) line += fmt::format("{}{}", form == Form::csv ? "," : "  ", number);
  return line + "\n";
}

Form form_of(const TrainOptions& options) {
  if (options.output.empty()) return options.json ? Form::json : Form::plain;
  return options.output.ends_with(".csv") ? Form::csv : Form::json;
}

std::string csv_header(const SampleKind& kind, std::int64_t top) {
  if (kind.regression) {
    std::string header = "name";
    for (std::int64_t i = 0; i < kind.classes; ++i)
      header += kind.class_names.empty() ? fmt::format(",number_{}", i + 1)
                                         : fmt::format(",{}", csv_field(kind.class_name(i)));
    return header + "\n";
  }
  std::string header = "name,class,share";
  for (std::int64_t i = 2; i <= top; ++i) header += fmt::format(",class_{},share_{}", i, i);
  return header + "\n";
}

std::string line_of(const std::string& name, const std::vector<Guess>& guesses, Form form) {
  if (form == Form::json) {
    nlohmann::ordered_json row = {
        {"name", name}, {"class", guesses.front().name}, {"share", guesses.front().share}};
    if (guesses.size() > 1)
      for (const Guess& guess : guesses)
        row["top"].push_back({{"class", guess.name}, {"share", guess.share}});
    return json_text(row) + "\n";
  }
  std::string line = form == Form::csv ? csv_field(name) : name;
  for (const Guess& guess : guesses)
    line += form == Form::csv ? fmt::format(",{},{}", csv_field(guess.name), guess.share)
                              : fmt::format("  {} {:.4f}", guess.name, guess.share);
  return line + "\n";
}

// To a file, which appears when all is written, or to standard output.
class Lines {
 public:
  explicit Lines(const TrainOptions& options, const SampleKind& kind) : path_(options.output) {
    if (path_.empty()) return;
    file_ = std::make_unique<DurableFile>(path_);
    if (form_of(options) == Form::csv) write(csv_header(kind, std::min(options.top, kind.classes)));
  }
  void write(const std::string& lines) {
    if (file_) file_->write(lines);
    else fmt::print("{}", lines);
  }
  void finish() {
    std::fflush(stdout);
    if (!file_) return;
    file_->finish();
    file_->publish();
    sync_directory(folder_of(path_));
  }

 private:
  std::string path_;
  std::unique_ptr<DurableFile> file_;
};

// "-" gives way to the names that standard input has, one a line. Rank 0's input; collective.
std::vector<std::string> named_paths(const std::vector<std::string>& given) {
  if (std::find(given.begin(), given.end(), "-") == given.end()) return given;
  std::string names;
  if (process().rank == 0)
    for (std::string line; std::getline(std::cin, line);) names += line + "\n";
  names = world_group().broadcast(names, 0);
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    if (path != "-") {
      paths.push_back(path);
      continue;
    }
    for (std::size_t begin = 0; begin < names.size(); begin = names.find('\n', begin) + 1) {
      std::string name = names.substr(begin, names.find('\n', begin) - begin);
      if (name.ends_with('\r')) name.pop_back();
      if (!name.empty()) paths.push_back(std::move(name));
    }
    names.clear();  // of a second one
  }
  return paths;
}

}  // namespace

void predict(const TrainOptions& options) {
  const SampleKind kind = kind_of(*options.found);
  const std::vector<std::string> paths = named_paths(options.predict);
  OwnGpu gpu;
  std::unique_ptr<Lines> lines;
  const UnlabelledSamples input = on_all_ranks([&] {
    gpu = gpu_of_this_rank(options.device);
    UnlabelledSamples found = unlabelled_samples(paths, kind.shape, kind.table);
    if (process().rank == 0) lines = std::make_unique<Lines>(options, kind);
    return found;
  });
  if (lines && !input.left_out.empty()) log_warning("{}", input.left_out);
  for (const std::string& note : input.notes)
    if (lines) log_warning("{}", note);
  RestoredModel model(options, kind, gpu);
  const Output shares = kind.regression ? model.logits() : softmax(model.scope(), model.logits());
  const BatchOptions batching = batch_options(options);
  ReadThreads threads(input.samples->kind().decoded ? batching.threads : 1);

  const auto predicted = [&](std::int64_t begin, std::int64_t end) {
    std::string text;
    if (begin >= end) return text;
    const Batch batch{.samples = Tensor(DType::f32, batch_shape(kind, end - begin)),
                      .labels = Tensor(DType::i32, {end - begin})};
    threads.run(end - begin, [&](std::int64_t i) { input.samples->read(begin + i, nullptr, batch, i); });
    const Tensor found = model.session().run(shares, {{model.samples(), batch.samples}});
    const auto classes = static_cast<std::size_t>(kind.classes);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::string& name = input.names[static_cast<std::size_t>(i)];
      const auto row = found.span<float>().subspan(static_cast<std::size_t>(i - begin) * classes, classes);
      text += kind.regression ? line_of_numbers(name, row, form_of(options))
                              : line_of(name, largest(row, options.top, kind), form_of(options));
    }
    return text;
  };
  const std::int64_t count = input.samples->size(), each = batching.batch_size;
  for (std::int64_t first = 0; first < count; first += each * batching.ranks) {
    const std::int64_t begin = std::min(first + each * batching.rank, count);
    const std::string own = on_all_ranks([&] { return predicted(begin, std::min(begin + each, count)); });
    for (const std::string& theirs : world_group().allgather(own))
      if (lines) lines->write(theirs);
  }
  if (!lines) return;
  lines->finish();
  if (!options.output.empty())
    log_info("{} predictions of {} at step {} are in {}", count, options.checkpoint_dir, model.global_step(),
             options.output);
}

}  // namespace kolo::models

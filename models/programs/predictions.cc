#include <kolo/models/programs/predictions.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/models/column_scale.h>
#include <kolo/models/data.h>
#include <kolo/models/own_files.h>
#include <kolo/models/paths.h>
#include <kolo/models/programs/picture_check.h>
#include <kolo/models/programs/restored_model.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/skip_hint.h>
#include <kolo/models/programs/training_config.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/models/read_ahead.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

struct Guess {
  std::string name;  // of the class or label
  double share = 0;
};

// To six significant digits, so that of small shares, too, the larger one stays so. Of a share close to 1
// what it lacks has four of them: no share becomes 1 that is less, and samples keep their order.
double told(double share) {
  const double lacks = 1 - share;
  const bool is_close = share > 0.5 && lacks > 0;
  const std::string text =
      is_close ? fmt::format("{:.{}f}", share, std::max(6, 4 + static_cast<int>(-std::log10(lacks))))
               : fmt::format("{:.6g}", share);
  return parse_double(text).value_or(share);
}

// Shares of classes, or probabilities of labels, from a sample's logits: a float that is less than 1 is so by
// 6e-8 at least, and sure answers would all be alike. None is 1 as long as others are more than 0.
std::vector<double> answers_from(std::span<const float> logits, LabelKind kind) {
  std::vector<double> answers(logits.begin(), logits.end());
  const double below_1 = std::nextafter(1.0, 0.0);
  for (double& one : answers) {
    if (kind != LabelKind::several) break;
    const double other = std::exp(-one);
    one = other > 0 ? std::min(1 / (1 + other), below_1) : 1;
  }
  if (kind != LabelKind::one_class || answers.empty()) return answers;
  const double largest = *std::max_element(answers.begin(), answers.end());
  double sum = 0;
  for (double& one : answers) sum += one = std::exp(one - largest);
  const bool is_sure = std::count(answers.begin(), answers.end(), 0.0) + 1 == std::ssize(answers);
  for (double& one : answers) one = is_sure ? one : std::min(one / sum, below_1);
  return answers;
}

std::vector<Guess> largest(std::span<const double> shares, std::int64_t top, const SampleKind& kind) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min(static_cast<std::size_t>(top), order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::size_t a, std::size_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i)
    guesses.push_back({kind.class_name(static_cast<std::int64_t>(order[i])), told(shares[order[i]])});
  return guesses;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

// What is told of a sample: its likeliest classes or labels, or each number or label.
class SampleText {
 public:
  SampleText(const TrainOptions& options, const SampleKind& kind)
      : kind_(kind),
        top_(options.top.value_or(1)),
        is_ranked_(kind.label_kind == LabelKind::one_class ||
                   (kind.label_kind == LabelKind::several && options.top)),
        of_labels_(kind.label_kind == LabelKind::several) {
    if (options.output.empty()) form_ = options.json ? Form::json : Form::plain;
    else form_ = options.output.ends_with(".csv") ? Form::csv : Form::json;
  }

  // "" where the form has none.
  std::string header() const {
    if (form_ != Form::csv) return "";
    if (is_ranked_) return ranked_header();
    // A number or label may be called so, and readers find columns by their names.
    bool is_taken = false;
    for (std::int64_t i = 0; i < kind_.classes; ++i) is_taken |= kind_.class_name(i) == "name";
    std::string text = is_taken ? "sample" : "name";
    for (std::int64_t i = 0; i < kind_.classes; ++i)
      text += fmt::format(",{}", csv_field(kind_.class_name(i)));
    return text + "\n";
  }

  std::string line(const std::string& name, std::span<const double> outputs) const {
    if (form_ == Form::json) return json_line(name, outputs);
    std::string text = form_ == Form::csv ? csv_field(name) : name;
    if (is_ranked_)
      for (const Guess& guess : largest(outputs, top_, kind_))
        text += form_ == Form::csv ? fmt::format(",{},{}", csv_field(guess.name), guess.share)
                                   : fmt::format("  {} {:.4f}", guess.name, guess.share);
    for (std::size_t i = 0; !is_ranked_ && i < outputs.size(); ++i)
      if (form_ == Form::plain && of_labels_)
        text += fmt::format("  {} {:.4f}", kind_.class_name(static_cast<std::int64_t>(i)), outputs[i]);
      else if (of_labels_) text += fmt::format(",{}", told(outputs[i]));
      else text += fmt::format("{}{}", form_ == Form::csv ? "," : "  ", static_cast<float>(outputs[i]));
    return text + "\n";
  }

 private:
  enum class Form { plain, csv, json };

  std::string ranked_header() const {
    std::string text = fmt::format("name,{},{}", what(), how_much());
    for (std::int64_t i = 2; i <= std::min(top_, kind_.classes); ++i)
      text += fmt::format(",{}_{},{}_{}", what(), i, how_much(), i);
    return text + "\n";
  }

  const char* what() const { return of_labels_ ? "label" : "class"; }
  const char* how_much() const { return of_labels_ ? "probability" : "share"; }
  nlohmann::ordered_json json_of(const Guess& guess) const {
    return {{what(), guess.name}, {how_much(), guess.share}};
  }

  std::string json_line(const std::string& name, std::span<const double> outputs) const {
    nlohmann::ordered_json row = {{"name", name}};
    if (is_ranked_) {
      const std::vector<Guess> guesses = largest(outputs, top_, kind_);
      row.update(json_of(guesses.front()));
      for (const Guess& guess : guesses)
        if (guesses.size() > 1) row["top"].push_back(json_of(guess));
      return json_text(row) + "\n";
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (of_labels_)
        row["labels"].push_back(json_of({kind_.class_name(static_cast<std::int64_t>(i)), told(outputs[i])}));
      else row["numbers"].push_back(outputs[i]);
    return json_text(row) + "\n";
  }

  const SampleKind& kind_;
  std::int64_t top_;
  bool is_ranked_, of_labels_;
  Form form_ = Form::plain;
};

// To a file, which appears when all is written, or to standard output.
class Lines {
 public:
  Lines(std::string path, const std::string& header) : path_(std::move(path)) {
    if (path_.empty()) return;
    file_ = std::make_unique<DurableFile>(path_);
    write(header);
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
  if (names.find_first_not_of("\r\n") == std::string::npos)
    throw SharedError(fmt::format("--predict -: standard input names no file{}",
                                  kolo::detail::is_under_kolorun() ? "; kolorun --stdin hands it on" : ""));
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

// Of which the folder knows the numbers; none where it is of an earlier version, or there are none.
std::vector<TableColumn> columns_of(const FolderConfig& found) {
  if (found.column_sizes.largest.empty()) return {};
  return detail::unit_columns(found.table.get(), found.sample, dtype_from_name(found.dtype));
}

// Rows whose numbers the model has not learnt from, of each file.
void warn_of_columns(const FolderConfig& found, const UnlabelledSamples& input) {
  const std::vector<TableColumn> columns = columns_of(found);
  if (columns.empty()) return;
  const auto file_of = [&](std::int64_t i) {
    const std::string& name = input.names[static_cast<std::size_t>(i)];
    return name.substr(0, name.find_last_of(":["));
  };
  const std::int64_t count = input.samples->size();
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    const std::string file = file_of(begin);
    while (end < count && file_of(end) == file) ++end;
    const ColumnSizes sizes = detail::sizes_of_samples(columns, *input.samples, begin, end).columns;
    std::string warning = detail::column_scale_warning(file, columns, sizes, found.column_sizes);
    if (warning.empty() && found.largest && !sizes.largest.empty())
      warning =
          detail::scale_warning(file,
                                {.largest = *std::max_element(sizes.largest.begin(), sizes.largest.end()),
                                 .least = *std::min_element(sizes.least.begin(), sizes.least.end())},
                                {.largest = found.largest, .least = found.least});
    if (!warning.empty()) log_warning("{}", warning);
  }
}

void check_output(const std::string& output, const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (std::error_code ignored; !output.empty() && std::filesystem::equivalent(output, path, ignored))
      throw InvalidArgumentError("--output {}: --predict reads this file; name another one", output);
  if (detail::is_folder(output))
    throw InvalidArgumentError("--output {}: a folder is there; name a file, as {}", output,
                               (std::filesystem::path(output) / "predictions.csv").string());
  // Perhaps the data of the training: what another has written is not lost by a word too few.
  std::error_code ignored;
  if (!output.empty() && std::filesystem::file_size(output, ignored) > 0 && !ignored &&
      !detail::may_be_replaced(output))
    throw InvalidArgumentError(
        "--output {}: there is a file that --predict has not written; name another one, or remove it",
        output);
}

// Samples in batches, and what is told of each.
class PredictedLines {
 public:
  PredictedLines(const TrainOptions& options, const SampleKind& kind, const UnlabelledSamples& input,
                 const SampleText& text, RestoredModel& model)
      : kind_(kind),
        input_(input),
        text_(text),
        model_(model),
        leaves_out_(options.skip_damaged),
        threads_(input.samples->kind().decoded ? batch_options(options).threads : 1) {}

  // Of the samples from `begin` on and before `end`.
  std::string of(std::int64_t begin, std::int64_t end) {
    std::string text;
    if (begin >= end) return text;
    const Batch batch{.samples = Tensor(DType::f32, batch_shape(kind_, end - begin)),
                      .labels = Tensor(DType::i32, {end - begin})};
    with_skip_hint(input_.samples->kind(),
                   [&] { threads_.run(end - begin, [&](std::int64_t i) { read(begin + i, batch, i); }); });
    const Tensor found = model_.session().run(model_.logits(), {{model_.samples(), batch.samples}});
    const auto classes = static_cast<std::size_t>(kind_.classes);
    for (std::int64_t i = begin; i < end; ++i) {
      if (damaged_.contains(i)) continue;
      const std::string& name = input_.names[static_cast<std::size_t>(i)];
      const auto row = found.span<float>().subspan(static_cast<std::size_t>(i - begin) * classes, classes);
      text += text_.line(name, answers_from(row, kind_.label_kind));
    }
    return text;
  }
  const DamagedSamples& damaged() const { return damaged_; }

 private:
  // On any of the threads.
  void read(std::int64_t index, const Batch& batch, std::int64_t place) {
    try {
      input_.samples->read(index, nullptr, batch, place);
    } catch (const Error& error) {
      if (!leaves_out_) throw;
      std::fill_n(batch.samples.data<float>() + place * kind_.shape.elements(), kind_.shape.elements(), 0.0F);
      MutexLock lock(mutex_);
      damaged_.emplace(index, error.what());
    }
  }

  const SampleKind& kind_;
  const UnlabelledSamples& input_;
  const SampleText& text_;
  RestoredModel& model_;
  const bool leaves_out_;
  Mutex mutex_;
  DamagedSamples damaged_;  // mutex_, while samples are read
  ReadThreads threads_;
};

}  // namespace

void predict(const TrainOptions& options) {
  const SampleKind kind = kind_of(*options.found);
  const std::vector<std::string> paths = named_paths(options.predict);
  const SampleText sample_text(options, kind);
  OwnGpu gpu;
  std::unique_ptr<Lines> lines;
  const UnlabelledSamples input = on_all_ranks([&] {
    gpu = gpu_of_this_rank(options.device);
    check_output(options.output, paths);
    const bool by_columns = !columns_of(*options.found).empty();  // warn_of_columns speaks of them
    UnlabelledSamples found =
        unlabelled_samples(paths, kind.shape, kind.table, by_columns ? std::nullopt : kind.largest,
                           by_columns ? std::nullopt : kind.least);
    if (process().rank == 0) lines = std::make_unique<Lines>(options.output, sample_text.header());
    return found;
  });
  if (lines && !input.left_out.empty()) log_warning("{}", input.left_out);
  for (const std::string& note : input.notes)
    if (lines) log_warning("{}", note);
  if (lines) warn_of_columns(*options.found, input);
  RestoredModel model(options, kind, gpu);
  PredictedLines predicted(options, kind, input, sample_text, model);
  const BatchOptions batching = batch_options(options);
  const std::int64_t count = input.samples->size(), each = batching.batch_size;
  for (std::int64_t first = 0; first < count; first += each * batching.ranks) {
    const std::int64_t begin = std::min(first + each * batching.rank, count);
    const std::string own = on_all_ranks([&] { return predicted.of(begin, std::min(begin + each, count)); });
    for (const std::string& theirs : world_group().allgather(own))
      if (lines) lines->write(theirs);
  }
  const auto left_out = tell_damaged(predicted.damaged(), count_of(count, "sample"));
  if (std::ssize(left_out) == count)
    throw SharedError(
        fmt::format("--predict: all {} samples are damaged; one at least must be whole", count));
  if (!lines) return;
  lines->finish();
  if (!options.output.empty())
    log_info("{} of {} at step {} {} in {}", count_of(count - std::ssize(left_out), "prediction"),
             options.checkpoint_dir, model.global_step(), count - std::ssize(left_out) == 1 ? "is" : "are",
             options.output);
}

}  // namespace kolo::models

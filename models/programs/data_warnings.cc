#include <kolo/models/programs/data_warnings.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/models/column_scale.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

std::string named(const SampleKind& kind, const std::vector<std::int64_t>& classes) {
  constexpr std::size_t kMostNamed = 8;
  const bool are_several = kind.label_kind == LabelKind::several;
  std::string text = are_several ? "the label" : classes.size() == 1 ? "the class" : "the classes";
  if (are_several && classes.size() > 1) text += "s";
  for (std::size_t i = 0; i < std::min(classes.size(), kMostNamed); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", kind.class_name(classes[i]));
  return classes.size() > kMostNamed ? text + fmt::format(" and {} more", classes.size() - kMostNamed) : text;
}

void warn_of_classes(const TrainingData& data) {
  const SampleKind& kind = data.kind();
  if (!data.train || kind.label_kind == LabelKind::numbers) return;
  const std::vector<std::int64_t> training = data.train->class_counts();
  const std::vector<std::int64_t> testing =
      data.test ? data.test->class_counts() : std::vector<std::int64_t>();
  std::vector<std::int64_t> untrained, untested;
  for (std::size_t i = 0; i < training.size(); ++i) {
    if (training[i] == 0) untrained.push_back(static_cast<std::int64_t>(i));
    else if (i < testing.size() && testing[i] == 0) untested.push_back(static_cast<std::int64_t>(i));
  }
  const bool are_several = kind.label_kind == LabelKind::several;
  const char* const accuracy = are_several ? "exact match" : "accuracy";
  std::string in_test;
  for (const std::int64_t number : untrained)
    if (const auto i = static_cast<std::size_t>(number); i < testing.size() && testing[i] > 0)
      in_test +=
          fmt::format("{}{} of {}", in_test.empty() ? "" : ", ",
                      in_test.empty() ? count_of(testing[i], "test sample") : std::to_string(testing[i]),
                      kind.class_name(number));
  if (!in_test.empty())
    log_warning(
        "there {} {}, of which there is no training sample: the model cannot name such samples, and the test "
        "{} counts them as wrong",
        in_test.starts_with("1 ") ? "is" : "are", in_test, accuracy);
  if (!untrained.empty())
    log_warning(
        "there is no training sample of {}, and the model has {} outputs, one of each {}{}",
        named(kind, untrained), kind.classes, are_several ? "label" : "class",
        kind.class_names.empty() && !are_several
            ? "; labels that are numbers count from 0 without gaps, and --loss mse finds them as numbers"
            : "");
  if (!untested.empty())
    log_warning("there is no test sample of {}, of which the test {} says nothing", named(kind, untested),
                accuracy);
}

// Samples, how large their numbers are, and the file that holds them if they are arrays.
struct Part {
  const SampleSet* samples;
  const detail::SampleSizes& sizes;
  const char* x;
};

std::string scale_text(const Part& part, const detail::NumberSizes& trained) {
  const SampleKind& kind = part.samples->kind();
  detail::NumberSizes given = {
      .largest = kind.largest,
      .least = kind.least,
      .are_images = kind.shape.rank() == 3 && part.samples->size() >= detail::kManyImages};
  const ColumnSizes& columns = part.sizes.columns;
  if (!columns.largest.empty()) {
    given.largest = *std::max_element(columns.largest.begin(), columns.largest.end());
    given.least = *std::min_element(columns.least.begin(), columns.least.end());
  }
  const bool are_arrays = !kind.table && !kind.decoded && (kind.largest != 1 || kind.least != 0);
  return detail::scale_warning(are_arrays ? fmt::format("{}, {}", kind.name, part.x) : kind.name, given,
                               trained);
}

// Of samples of any kind, where the training's may be of any scale, too; and of columns, and numbers to find.
void warn_of_scale(const TrainOptions& options, const TrainingData& data) {
  const detail::SampleSizes learnt = {.columns = data.column_sizes, .labels = data.label_sizes};
  const detail::SampleSizes tested =
      data.test ? detail::sizes_of_samples(detail::unit_columns(data.test->kind()), *data.test)
                : detail::SampleSizes();
  const ColumnSizes& columns = options.found ? options.found->column_sizes : learnt.columns;
  const ColumnSizes& labels = options.found ? options.found->label_sizes : learnt.labels;
  const detail::NumberSizes numbers = {
      .largest = options.found ? options.found->largest : data.kind().largest,
      .least = options.found ? options.found->least : data.kind().least};
  const auto texts_of = [&](const Part& part) {
    const SampleKind& kind = part.samples->kind();
    // Of arrays whose columns say it nothing else need be said.
    std::vector<std::string> texts = {
        detail::column_scale_warning(kind.name, detail::unit_columns(kind), part.sizes.columns, columns)};
    if (texts.front().empty()) texts.front() = scale_text(part, numbers);
    if (kind.label_kind == LabelKind::numbers)
      texts.push_back(detail::column_scale_warning(kind.name + ", numbers to find",
                                                   detail::number_columns(kind), part.sizes.labels, labels));
    std::erase(texts, "");
    return texts;
  };
  std::vector<std::string> texts;
  if (options.found && data.train) texts = texts_of({data.train.get(), learnt, "x_train.npy"});
  // Parts of one table are of one unit.
  const bool is_told = !texts.empty() && data.test && !data.drawn.empty();
  if (data.test && !is_told)
    for (std::string& text : texts_of({data.test.get(), tested, "x_test.npy"}))
      texts.push_back(std::move(text));
  for (const std::string& text : texts) log_warning("{}", text);
}

// The largest absolute number of a sample's element, or of a number to find, over samples all over the set.
std::vector<float> sizes_of(const SampleSet& samples, Tensor Batch::*which) {
  constexpr std::int64_t kMostRead = 1000;
  const SampleKind& kind = samples.kind();
  const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  const auto values = (one.*which).span<float>();
  std::vector<float> sizes(values.size());
  const std::int64_t count = std::min(samples.size(), kMostRead);
  for (std::int64_t i = 0; i < count; ++i) {
    samples.read(i * samples.size() / count, nullptr, one, 0);
    for (std::size_t k = 0; k < sizes.size(); ++k) sizes[k] = std::max(sizes[k], std::abs(values[k]));
  }
  return sizes;
}

// An element of a sample.
struct Element {
  std::string column;    // `column 2 "size"`
  bool is_word = false;  // 0 or 1
};

std::vector<Element> elements_of(const SampleKind& kind) {
  std::vector<Element> elements;
  if (kind.table)
    for (const TableColumn& column : kind.table->features)
      elements.resize(elements.size() + static_cast<std::size_t>(column.elements()),
                      {.column = "column " + detail::column_text(column.place, column.name),
                       .is_word = !column.words.empty()});
  for (std::size_t i = elements.size(); i < static_cast<std::size_t>(kind.shape.dim(0)); ++i)
    elements.push_back({.column = fmt::format("number {}", i + 1)});
  return elements;
}

// "" where the columns of a table, or the numbers of a sample, are not very different.
std::string different_sizes(const SampleSet& train) {
  constexpr float kDiffer = 100;
  constexpr std::int64_t kFewNumbers = 100;  // of a sample: measured ones rather than pixels
  const SampleKind& kind = train.kind();
  if (kind.shape.rank() != 1 || (!kind.table && kind.shape.dim(0) > kFewNumbers)) return "";
  const std::vector<Element> elements = elements_of(kind);
  const std::vector<float> sizes = sizes_of(train, &Batch::samples);
  std::optional<std::size_t> least, most;  // of numbers
  bool has_words = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    has_words |= elements[i].is_word;
    if (sizes[i] == 0 || elements[i].is_word) continue;
    if (!least || sizes[i] < sizes[*least]) least = i;
    if (!most || sizes[i] > sizes[*most]) most = i;
  }
  if (!most) return "";
  const std::string largest = fmt::format("up to {:.4g} in {}", sizes[*most], elements[*most].column);
  if (sizes[*most] > kDiffer * sizes[*least])
    return fmt::format("numbers are up to {:.4g} in {} and {}", sizes[*least], elements[*least].column,
                       largest);
  if (has_words && sizes[*most] > kDiffer)
    return fmt::format("numbers are {}, and words are 0 or 1", largest);
  return "";
}

void hint_at_normalize(const SampleSet& train) {
  constexpr float kLargeTarget = 100, kLargePixel = 20;
  const SampleKind& kind = train.kind();
  std::vector<std::string> why;
  if (std::string differ = kind.decoded ? "" : different_sizes(train); !differ.empty())
    why.push_back(std::move(differ));
  else if (kind.largest.value_or(0) > kLargePixel && !kind.decoded)
    why.push_back(fmt::format("numbers are up to {:.4g}{}", *kind.largest,
                              *kind.largest <= 255 && kind.shape.rank() == 3
                                  ? " (pixels may be divided by 255, or be u1, which kolo divides)"
                                  : ""));
  if (train.kind().label_kind == LabelKind::numbers) {
    const std::vector<float> sizes =
        kind.largest_label ? std::vector<float>{*kind.largest_label} : sizes_of(train, &Batch::labels);
    const float most = *std::max_element(sizes.begin(), sizes.end());
    if (most > kLargeTarget) why.push_back(fmt::format("numbers to find are up to {:.4g}", most));
  }
  if (!why.empty())
    log_warning("{}: a model learns little from such numbers, and --normalize brings all to one size",
                fmt::join(why, ", and "));
}

// Of a table's elements what each is: `column 2 "size"`, or `the word "red" of column 3 "colour"`.
std::vector<std::string> meanings_of(const TableSchema& table, bool with_names) {
  std::vector<std::string> meanings;
  for (const TableColumn& column : table.features) {
    const std::string name =
        with_names ? fmt::format("column {:?}", column.name) : fmt::format("column {}", column.place + 1);
    if (column.words.empty()) meanings.push_back(name);
    for (const std::string& word : column.words)
      meanings.push_back(fmt::format("the word {:?} of {}", word, name));
  }
  return meanings;
}

// The first meaning that is another one there: `column "b" is where the source's training had column "a"`.
std::string first_other(const std::vector<std::string>& here, const std::vector<std::string>& there) {
  if (here.size() != there.size()) return "";
  const auto [other, was] = std::mismatch(here.begin(), here.end(), there.begin(), detail::is_same_name);
  return other == here.end() ? "" : fmt::format("{} is where the source's training had {}", *other, *was);
}

std::vector<std::string> classes_of(const std::vector<std::string>& names, std::int64_t classes,
                                    LabelKind kind) {
  const char* const what = kind == LabelKind::one_class ? "class"
                           : kind == LabelKind::several ? "label"
                                                        : "number";
  std::vector<std::string> found;
  for (std::int64_t i = 0; i < classes; ++i)
    found.push_back(fmt::format("the {} {:?}", what, names[static_cast<std::size_t>(i)]));
  return found;
}

// Weights know no names: of the columns, words and classes of another training they go by places.
void warn_of_first_weights(const TrainOptions& options, const SampleKind& kind) {
  const auto weights = options.found ? std::nullopt : config_of_weights(options);
  if (!weights) return;
  std::string other;
  if (kind.table && weights->table) {
    const bool with_names = kind.table->is_named && weights->table->is_named;
    other = first_other(meanings_of(*kind.table, with_names), meanings_of(*weights->table, with_names));
  }
  const bool have_names = !kind.class_names.empty() && !weights->class_names.empty();
  if (other.empty() && have_names && weights->label_kind == kind.label_kind &&
      weights->classes == kind.classes)
    other = first_other(classes_of(kind.class_names, kind.classes, kind.label_kind),
                        classes_of(weights->class_names, kind.classes, kind.label_kind));
  if (!other.empty())
    log_warning("--init-from {}: {}. Weights belong to positions, so these start out wrong",
                options.init_from, other);
}

}  // namespace

void warn_of_data(const TrainOptions& options, const TrainingData& data) {
  if (process().rank != 0) return;
  const std::vector<std::string>& warnings = data.kind().warnings;
  for (const std::string& warning : warnings) log_warning("{}", warning);
  if (data.train && data.test)
    for (const std::string& warning : data.test->kind().warnings)
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) log_warning("{}", warning);
  warn_of_classes(data);
  warn_of_scale(options, data);
  if (data.train) warn_of_first_weights(options, data.kind());
  if (data.train && !options.normalize && !options.found && data.kind().dtype == DType::f32)
    hint_at_normalize(*data.train);
}

}  // namespace kolo::models

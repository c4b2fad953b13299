#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/models/data_splits.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/models.h>
#include <kolo/models/npy_pair.h>
#include <kolo/models/own_files.h>
#include <kolo/models/paths.h>
#include <kolo/models/picture_samples.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/seen_samples.h>
#include <kolo/models/shared_samples.h>
#include <kolo/models/table_samples.h>
#include <kolo/models/text_file.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;
using detail::is_file;
using detail::is_folder;
using detail::LearntPart;
using detail::Wanted;
using Found = std::shared_ptr<const SampleSet>;

constexpr std::size_t kMostNamed = 12;  // classes, in the description of samples

// "gpt and lstm".
std::string models_for_texts() {
  std::vector<std::string> names;
  for (const std::string& name : registered_models())
    if (find_model(name).input == DType::i32) names.push_back("--model " + name);
  return fmt::format("{}", fmt::join(names, " and "));
}

void check_takes_texts(const fs::path& path, const DataRequest& request) {
  if (request.input != DType::i32 && is_table_name(path.stem()))
    throw InvalidArgumentError(
        "--data {}: a table with another ending; unpack it, so that its name ends in .csv or .tsv",
        path.string());
  if (request.input != DType::i32)
    throw InvalidArgumentError(
        "--data {}: a file that is no .csv or .tsv is a text, and the model takes no tokens: save samples "
        "as a .csv, or name the folder of pictures or of arrays (.npy); {} learn from a text",
        path.string(), models_for_texts());
  if (is_image_name(path))
    throw InvalidArgumentError(
        "--data {}: a picture, and the model learns from a text; models for images are {}", path.string(),
        detail::models_for_images());
}

// Before the cells of a table that is of no use here. Rows may be digits, which models of grey images take.
void check_takes_tables(const fs::path& path, const DataRequest& request) {
  if (request.sample.rank() == 3 && request.sample.dim(0) > 1)
    throw InvalidArgumentError("--data {}: a table, and the model takes images {}; --model mlp takes tables",
                               path.string(), request.sample);
}

[[noreturn]] void throw_unknown_folder(const fs::path& folder) {
  if (!is_folder(folder)) detail::throw_no_folder(folder);
  throw NotFoundError(
      "--data {}: no data that kolo knows lies there, but {}; a folder holds pictures in a folder for each "
      "class, pictures with a .csv of names and classes, x_train.npy and y_train.npy, tables (.csv, .tsv), "
      "or "
      "the files of CIFAR-10 or MNIST",
      folder.string(), detail::contents_of(folder));
}

Found images_of(Dataset dataset, const DataRequest& request, Split split, LearntPart& learnt) {
  const detail::SampleContents contents = detail::contents_of_array(dataset.images);
  if (split == Split::train) learnt.learn(contents, "the training's part");
  else dataset.warnings = learnt.warnings_of(contents, dataset.name);
  return image_samples(std::move(dataset), request.augmentation);
}

Found cifar10(const fs::path& folder, const DataRequest& request, Split split, LearntPart& learnt) {
  if (split == Split::test && !has_cifar10_test(folder)) return nullptr;
  return images_of(load_cifar10(folder, split), request, split, learnt);
}

// `folder` is where request.data says, or there is none.
Found digits(const fs::path&, const DataRequest& request, Split split, LearntPart& learnt) {
  const auto found = load_digits(request.data, split);
  return found ? images_of(*found, request, split, learnt) : nullptr;
}

// Arrays and images in memory, which have no sample drawn for testing.
DataSplits parts_of(const fs::path& folder, const DataRequest& request, Wanted wanted,
                    Found (*read)(const fs::path&, const DataRequest&, Split, LearntPart&)) {
  LearntPart learnt(request);
  DataSplits splits = detail::each_split(request, wanted, [&](const DataRequest& asked, Split split) {
    return read(folder, asked, split, learnt);
  });
  splits.digests = learnt.digests();
  return splits;
}

DataSplits named(const char* format, DataSplits splits) {
  splits.format = format;
  return splits;
}

DataSplits from_folder(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  if (is_cifar10(folder)) return named("CIFAR-10", parts_of(folder, request, wanted, cifar10));
  if (is_file(folder / "x_train.npy") || is_file(folder / "x_test.npy"))
    return named(kArraysFormat, parts_of(folder, request, wanted, detail::npy_pair));
  if (is_named_images(folder))
    return named("pictures with a table of their labels", detail::named_pictures(folder, request, wanted));
  if (is_image_folder(folder))
    return named("pictures in folders of their classes", detail::classed_pictures(folder, request, wanted));
  if (detail::is_table_folder(folder)) check_takes_tables(folder, request);
  if (detail::is_table_folder(folder)) return named("tables", detail::table_samples(folder, request, wanted));
  if (!is_mnist(folder)) throw_unknown_folder(folder);
  return named("MNIST's IDX files", parts_of(folder, request, wanted, digits));
}

DataSplits from_text(const fs::path& file, const DataRequest& request, Wanted wanted) {
  check_takes_texts(file, request);
  return named("text", detail::text_samples_of_file(file, request, wanted));
}

// Of a model that learns from a text.
void check_no_samples(const std::string& folder) {
  const bool has_pictures =
      is_image_folder(folder) || is_named_images(folder) || is_cifar10(folder) || is_mnist(folder);
  const char* const found = has_pictures                                ? "images"
                            : is_file(fs::path(folder) / "x_train.npy") ? "arrays"
                            : detail::is_table_folder(folder)           ? "tables"
                                                                        : nullptr;
  if (found == nullptr) return;
  throw InvalidArgumentError("--data {}: {}, and the model learns from a text; {}", folder, found,
                             has_pictures ? "models for images are " + detail::models_for_images()
                                          : "--model mlp takes rows of numbers");
}

// Checkpoints and logs of a training may lie beside the text.
std::vector<std::string> texts_in(const fs::path& folder) {
  const std::vector<std::string> files = detail::files_in(folder);
  std::vector<std::string> texts;
  for (const std::string& name : files)
    if (!detail::is_own_file(folder / name)) texts.push_back(name);
  return texts.empty() ? files : texts;
}

// A folder whose only file is a text is as good as that file.
DataSplits from_folder_of_text(const DataRequest& request, Wanted wanted) {
  const std::string data = request.data.value_or("");
  std::vector<std::string> files;
  if (is_folder(data)) files = texts_in(data);
  if (files.size() == 1 && !is_image_name(files[0]) && !is_table_name(files[0]))
    return from_text(fs::path(data) / files[0], request, wanted);
  if (is_folder(data)) check_no_samples(data);
  throw InvalidArgumentError(
      "the model learns from a text: --data must name a file; {}",
      !request.data      ? "there is none"
      : !is_folder(data) ? data + " is none"
      : files.size() == 1
          ? fmt::format("{} is a folder, and {} in it is no text", data, files[0])
          : fmt::format("{} is a folder, in which {}", data,
                        files.empty() ? "lies no file, but " + detail::contents_of(data)
                                      : fmt::format("{} files lie, such as {}", files.size(), files[0])));
}

DataSplits from_anywhere(const DataRequest& request, Wanted wanted) {
  const bool is_text = request.input == DType::i32;
  if (request.data && is_file(*request.data) && is_table_name(*request.data)) {
    if (is_text)
      throw InvalidArgumentError(
          "--data {}: a table, and the model learns from a text; --model mlp takes tables", *request.data);
    check_takes_tables(*request.data, request);
    return named("table", detail::table_samples(*request.data, request, wanted));
  }
  if (request.data && is_file(*request.data)) return from_text(*request.data, request, wanted);
  if (is_text) return from_folder_of_text(request, wanted);
  if (request.data && request.data != "generated") return from_folder(*request.data, request, wanted);
  return named(request.data ? "generated digits" : "MNIST's IDX files",
               parts_of({}, request, wanted, digits));
}

const char* text_of(LabelKind kind) {
  switch (kind) {
    case LabelKind::one_class: return "classes";
    case LabelKind::numbers: return "numbers to find";
    case LabelKind::several: return "several of each sample";
  }
  return "";
}

const char* text_of_loss(LabelKind kind) {
  switch (kind) {
    case LabelKind::one_class: return "--loss softmax is for classes";
    case LabelKind::numbers: return "--loss mse, mae and huber are for numbers";
    case LabelKind::several: return "--loss bce is for several labels of each sample";
  }
  return "";
}

// Options that nobody obeys.
void check_options(const DataRequest& request, const SampleKind& kind) {
  if (request.label_kind && *request.label_kind != kind.label_kind)
    throw InvalidArgumentError("{}: its labels are {}, and {}; leave --loss out", kind.name,
                               text_of(kind.label_kind), text_of_loss(*request.label_kind));
  if (kind.table) return;
  const CsvOptions& table = request.table;
  const auto names_classes = [&] { return kind.decoded && request.data && is_named_images(*request.data); };
  const char* const unused = !table.ignore.empty()                       ? "ignore"
                             : table.missing != MissingCells::refuse     ? "missing"
                             : !table.target.empty() && !names_classes() ? "target"
                                                                         : nullptr;
  if (unused != nullptr)
    throw InvalidArgumentError("--{} is for tables, and {} is none; leave it out", unused, kind.name);
}

// Words of which hardly two rows have the same: amounts in euros, names.
void check_words(const SampleSet& train, std::int64_t few_classes) {
  const SampleKind& kind = train.kind();
  if (!kind.table || kind.class_names.empty() || kind.classes <= few_classes ||
      2 * kind.classes <= train.size())
    return;
  throw InvalidArgumentError(
      "{}: the labels are {} words in {} samples, such as {:?}; --target names another column, numbers are "
      "written as 1234.5, and --loss softmax takes the words for classes",
      kind.name, kind.classes, train.size(), kind.class_names.front());
}

// Numbers to find that happen to be whole.
void check_classes(const DataRequest& request, const SampleSet& train) {
  constexpr std::int64_t kFewClasses = 100;
  const SampleKind& kind = train.kind();
  if (request.classes > 0 || request.label_kind || kind.label_kind != LabelKind::one_class ||
      kind.dtype == DType::i32)
    return;
  check_words(train, kFewClasses);
  if (kind.classes <= std::max(train.size(), kFewClasses)) return;
  throw InvalidArgumentError(
      "{}: labels up to {} in {} samples; --loss mse finds them as numbers, --loss softmax takes them for {} "
      "classes, and words, as n7 for 7, are classes by their names",
      kind.name, kind.classes - 1, train.size(), kind.classes);
}

DataSplits load(const DataRequest& request, Wanted wanted) {
  DataSplits found = from_anywhere(request, wanted);
  if (found.train) check_classes(request, *found.train);
  const Found& any = found.train ? found.train : found.test;
  if (any) check_options(request, any->kind());
  return found;
}

std::string classes_text(const SampleSet& samples) {
  if (samples.kind().label_kind == LabelKind::numbers)
    return count_of(samples.kind().classes, "number") + " to find";
  const std::vector<std::int64_t> counts = samples.class_counts();
  const bool are_several = samples.kind().label_kind == LabelKind::several;
  std::string text = are_several ? count_of(samples.kind().classes, "label") + ", several a sample"
                                 : count_of(samples.kind().classes, "class");
  if (counts.empty()) return text;
  if (counts.size() > kMostNamed) {
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    return text + (*least == *most ? fmt::format(" of {} each", count_of(*least, "sample"))
                                   : fmt::format(" of {} to {} samples", *least, *most));
  }
  std::vector<std::string> each;
  for (std::size_t i = 0; i < counts.size(); ++i)
    each.push_back(fmt::format("{}: {}", samples.kind().class_name(static_cast<std::int64_t>(i)), counts[i]));
  return fmt::format("{} ({})", text, fmt::join(each, ", "));
}

}  // namespace

std::shared_ptr<const SampleSet> load_data(const DataRequest& request, Split split) {
  const DataSplits found = load(request, {.train = split == Split::train, .test = split == Split::test});
  return split == Split::train ? found.train : found.test;
}

DataSplits load_splits(const DataRequest& request) { return load(request, {.train = true, .test = true}); }

std::string description(const SampleSet& samples) {
  const SampleKind& kind = samples.kind();
  const std::string note = kind.note.empty() ? "" : ", " + kind.note;
  if (kind.dtype == DType::i32)
    return fmt::format("{}, {} of {} of {}{}", kind.name, count_of(samples.size(), "piece"),
                       count_of(kind.labels, "token"), count_of(kind.classes, "kind"), note);
  if (kind.shape.rank() == 3)
    return fmt::format("{}, {} of {}, {} x {}, {}{}", kind.name, count_of(samples.size(), "image"),
                       count_of(kind.shape.dim(0), "channel"), kind.shape.dim(1), kind.shape.dim(2),
                       classes_text(samples), note);
  return fmt::format("{}, {} of {}, {}{}", kind.name, count_of(samples.size(), "sample"),
                     count_of(kind.shape.elements(), "number"), classes_text(samples), note);
}

}  // namespace kolo::models

namespace kolo::models::detail {

std::string models_for_images() {
  std::string text;
  for (const std::string& name : registered_models()) {
    const Shape& sample = find_model(name).sample;
    if (sample.rank() == 3)
      text += fmt::format("{}{} ({} x {} in {})", text.empty() ? "" : ", ", name, sample.dim(1),
                          sample.dim(2), sample.dim(0) == 1 ? "grey" : "colour");
  }
  return text;
}

}  // namespace kolo::models::detail

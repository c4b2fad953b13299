#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/models.h>
#include <kolo/models/npy_pair.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/seen_samples.h>
#include <kolo/models/table_samples.h>
#include <kolo/models/unknown_labels.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;
using detail::is_file;
using detail::is_folder;
using detail::last_name;
using detail::Wanted;
using Found = std::shared_ptr<const SampleSet>;

constexpr double kTrainingText = 0.9;   // share of a text; the rest is for testing
constexpr std::size_t kMostNamed = 12;  // classes, in the description of samples

// "gpt and lstm".
std::string models_for_texts() {
  std::vector<std::string> names;
  for (const std::string& name : registered_models())
    if (find_model(name).input == DType::i32) names.push_back("--model " + name);
  return fmt::format("{}", fmt::join(names, " and "));
}

Found text_of_file(const fs::path& path, const DataRequest& request, Split split) {
  if (request.input != DType::i32 && is_table_name(path.stem()))
    throw InvalidArgumentError(
        "--data {}: a table with another ending; unpack it, so that its name ends in .csv or .tsv",
        path.string());
  if (request.input != DType::i32)
    throw InvalidArgumentError(
        "--data {}: a file that is no .csv or .tsv is a text, and the model takes no tokens; {} learn from a "
        "text, "
        "and arrays and pictures are read from their folder",
        path.string(), models_for_texts());
  if (is_image_name(path))
    throw InvalidArgumentError(
        "--data {}: a picture, and the model learns from a text; models for images are {}", path.string(),
        detail::models_for_images());
  const auto text = std::make_shared<const Text>(Text::read(path.string()));
  const bool training = split == Split::train;
  const auto for_testing = static_cast<double>(text->tokens().size()) * (1 - kTrainingText);
  if (!training && for_testing <= static_cast<double>(request.sample.dim(0) + 1)) return nullptr;
  return text_samples(last_name(path), text,
                      {.length = request.sample.dim(0),
                       .begin = training ? 0 : kTrainingText,
                       .end = training ? kTrainingText : 1});
}

Found pictures(ImageFolder folder, const DataRequest& request) {
  if (request.sample.rank() != 3)
    throw InvalidArgumentError(
        "--data {}: photographs, and the model takes {} and not images; those that do are {}", *request.data,
        request.sample, detail::models_for_images());
  if (folder.classes.size() < 2 && !folder.numbers)
    throw InvalidArgumentError(
        "{}: one class, \"{}\"; there must be at least two, each with pictures of its own{}", *request.data,
        folder.classes.front(), folder.warnings.empty() ? "" : "; " + folder.warnings.front());
  return folder_samples(std::move(folder), request.sample, request.augmentation);
}

// Labels become places in `names`.
void number_classes(ImageFolder& folder, const std::vector<std::string>& names) {
  if (folder.numbers) return;
  detail::UnknownLabels unknown{.file = folder.name, .counts = {}, .classes = names};
  const auto number = [&](std::int32_t& label) {
    const std::string& own = folder.classes[static_cast<std::size_t>(label)];
    const auto known = std::find(names.begin(), names.end(), own);
    if (known == names.end()) ++unknown.counts[own];
    else label = static_cast<std::int32_t>(known - names.begin());
  };
  for (std::int32_t& label : folder.labels) number(label);
  if (folder.several)
    for (auto& labels : *folder.several) std::for_each(labels.begin(), labels.end(), number);
  if (!unknown.counts.empty())
    throw InvalidArgumentError("{}: class {:?} {}", folder.name, unknown.counts.begin()->first,
                               detail::unknown_labels_text(unknown));
  folder.classes = names;
}

// What a training looks at while it learns is none that the trained model is told by, where there are both.
Split evaluated(Wanted wanted) { return wanted.train ? Split::validation : Split::test; }

Found photographs(const fs::path& folder, const DataRequest& request, Split split) {
  if (split == Split::train || has_image_folder_test(folder))
    return pictures(list_image_folder(folder, split), request);
  if (!request.whole) return nullptr;
  ImageFolder all = list_image_folder(folder, Split::train);
  if (!request.class_names.empty()) number_classes(all, request.class_names);
  all.left_out += fmt::format("{}all pictures for testing", all.left_out.empty() ? "" : ", ");
  return pictures(std::move(all), request);
}

ImageFolder part_of(const ImageFolder& whole, const std::vector<std::int64_t>& places) {
  ImageFolder part{.name = whole.name,
                   .classes = whole.classes,
                   .files = {},
                   .labels = {},
                   .label_table = whole.label_table,
                   .left_out = whole.left_out,
                   .warnings = whole.warnings};
  if (whole.several) part.several.emplace();
  if (whole.numbers) part.numbers.emplace();
  for (const std::int64_t place : places) {
    const auto i = static_cast<std::size_t>(place);
    part.files.push_back(whole.files[i]);
    if (whole.numbers) part.numbers->push_back((*whole.numbers)[i]);
    else if (whole.several) part.several->push_back((*whole.several)[i]);
    else part.labels.push_back(whole.labels[i]);
  }
  return part;
}

// Of a file below `folder`: its name there, wherever the folder lies.
std::uint64_t key_of(const fs::path& file, const fs::path& folder) {
  const std::string name = file.lexically_relative(folder).generic_string();
  return detail::digest_of_bytes(std::as_bytes(std::span(name)));
}

// Of its name, its size and its beginning: others of its name, as 1.png, are not the same picture.
std::uint64_t digest_of(const fs::path& file, const fs::path& folder) {
  std::error_code ignored;
  const std::uint64_t bytes = fs::file_size(file, ignored);
  std::array<char, 4096> beginning = {};
  std::ifstream(file, std::ios::binary).read(beginning.data(), std::ssize(beginning));
  const std::uint64_t of_name = key_of(file, folder),
                      of_size = detail::digest_of_bytes(std::as_bytes(std::span(&bytes, 1)), of_name);
  return detail::digest_of_bytes(std::as_bytes(std::span(beginning)), of_size);
}

// A tenth is for testing where nothing else is.
DataSplits shared_out(ImageFolder all, const fs::path& folder, const DataRequest& request, Wanted wanted) {
  const auto count = std::ssize(all.files);
  const auto add_note = [&](const std::string& note) {
    all.left_out += (all.left_out.empty() ? "" : ", ") + note;
  };
  std::vector<std::uint64_t> keys;
  for (const fs::path& file : all.files) keys.push_back(key_of(file, folder));
  const std::vector<std::int64_t> testing = detail::drawn_for_testing(keys, request.seed, all.labels);
  const auto digest_at = [&](std::int64_t place) {
    return digest_of(all.files[static_cast<std::size_t>(place)], folder);
  };
  const detail::Seen seen =
      request.whole ? detail::seen_in_training(request, testing, count, digest_at) : detail::Seen();
  if (!seen.text.empty()) all.warnings.push_back(seen.text);
  if (request.whole && !seen.is_same) {
    add_note(fmt::format("all {} pictures for testing", count));
    return {.train = nullptr, .test = pictures(std::move(all), request)};
  }
  if (!testing.empty())
    add_note(
        fmt::format("{} of {} pictures for testing by the seed {}", testing.size(), count, request.seed));
  DataSplits splits{
      .train = nullptr, .test = nullptr, .digests = detail::digests_of_drawn(testing, count, digest_at)};
  for (const std::int64_t place : testing)
    splits.drawn.push_back(
        all.files[static_cast<std::size_t>(place)].lexically_relative(folder).generic_string());
  if (wanted.test && !testing.empty()) splits.test = pictures(part_of(all, testing), request);
  if (wanted.train) splits.train = pictures(part_of(all, detail::others_than(testing, count)), request);
  return splits;
}

// Pictures with a table: without a test part of their own a tenth is for testing.
DataSplits named_pictures(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  const bool has_test = has_named_images_test(folder);
  const std::vector<std::string>& names = request.class_names;
  NamedImagesOptions options{.target = request.table.target,
                             .label_kind = request.label_kind,
                             .is_known = request.classes > 0,
                             .known = request.label_table};
  DataSplits splits;
  ImageFolder all;
  if (wanted.train || !has_test || !options.is_known) all = list_named_images(folder, Split::train, options);
  if (!names.empty() && !all.files.empty()) number_classes(all, names);
  if (has_test) {
    ImageFolder test;
    if (!options.is_known)
      options.label_kind = all.numbers   ? LabelKind::numbers
                           : all.several ? LabelKind::several
                                         : LabelKind::one_class;
    options.is_known = true;
    if (!options.known) options.known = all.label_table;
    if (wanted.test) test = list_named_images(folder, evaluated(wanted), options);
    if (wanted.test) number_classes(test, names.empty() ? all.classes : names);
    if (wanted.train) splits.train = pictures(std::move(all), request);
    if (wanted.test) splits.test = pictures(std::move(test), request);
    return splits;
  }
  return shared_out(std::move(all), folder, request, wanted);
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

Found cifar10(const fs::path& folder, const DataRequest& request, Split split) {
  if (split == Split::test && !has_cifar10_test(folder)) return nullptr;
  return image_samples(load_cifar10(folder, split), request.augmentation);
}

Found digits(const DataRequest& request, Split split) {
  const auto found = load_digits(request.data, split);
  return found ? image_samples(*found, request.augmentation) : nullptr;
}

// Each split for itself. The test split is read as the training's is.
template <typename Read>
DataSplits each(const DataRequest& request, Wanted wanted, const Read& read) {
  DataSplits splits;
  DataRequest asked = request;
  if (wanted.train) {
    splits.train = read(asked, Split::train);
    asked.classes = splits.train->kind().classes;
    asked.class_names = splits.train->kind().class_names;
    asked.label_kind = splits.train->kind().label_kind;
    asked.with_train = true;
  }
  if (wanted.test) splits.test = read(asked, Split::test);
  return splits;
}

DataSplits named(const char* format, DataSplits splits) {
  splits.format = format;
  return splits;
}

DataSplits from_folder(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  const auto each_of = [&](Found (*read)(const fs::path&, const DataRequest&, Split)) {
    return each(request, wanted,
                [&](const DataRequest& asked, Split split) { return read(folder, asked, split); });
  };
  if (is_cifar10(folder)) return named("CIFAR-10", each_of(cifar10));
  if (is_file(folder / "x_train.npy") || is_file(folder / "x_test.npy"))
    return named(kArraysFormat, each_of(detail::npy_pair));
  if (is_named_images(folder))
    return named("pictures with a table of their labels", named_pictures(folder, request, wanted));
  if (is_image_folder(folder) && !is_folder(folder / "train")) {
    ImageFolder all = list_image_folder(folder, Split::train);
    if (!request.class_names.empty()) number_classes(all, request.class_names);
    return named("pictures in folders of their classes", shared_out(std::move(all), folder, request, wanted));
  }
  if (is_image_folder(folder))
    return named("pictures in folders of their classes",
                 each(request, wanted, [&](const DataRequest& asked, Split split) {
                   return photographs(folder, asked, split == Split::train ? split : evaluated(wanted));
                 }));
  if (detail::is_table_folder(folder)) check_takes_tables(folder, request);
  if (detail::is_table_folder(folder)) return named("tables", detail::table_samples(folder, request, wanted));
  if (!is_mnist(folder)) throw_unknown_folder(folder);
  return named("MNIST's IDX files", each(request, wanted, digits));
}

DataSplits from_text(const fs::path& file, const DataRequest& request, Wanted wanted) {
  return named("text", each(request, wanted, [&](const DataRequest& asked, Split split) {
                 return text_of_file(file, asked, split);
               }));
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

// A folder whose only file is a text is as good as that file.
DataSplits from_folder_of_text(const DataRequest& request, Wanted wanted) {
  const std::string data = request.data.value_or("");
  std::vector<std::string> files;
  if (is_folder(data)) files = detail::files_in(data);
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
  return named(request.data ? "generated digits" : "MNIST's IDX files", each(request, wanted, digits));
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

// Numbers to find that happen to be whole.
void check_classes(const DataRequest& request, const SampleSet& train) {
  constexpr std::int64_t kFewClasses = 100;
  const SampleKind& kind = train.kind();
  if (request.classes > 0 || request.label_kind || kind.label_kind != LabelKind::one_class ||
      kind.dtype == DType::i32 || kind.classes <= std::max(train.size(), kFewClasses))
    return;
  throw InvalidArgumentError(
      "{}: labels up to {} in {} samples; --loss mse finds them as numbers, and --loss softmax takes them "
      "for classes",
      kind.name, kind.classes - 1, train.size());
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
    return fmt::format("{}, {} of {} of {}", kind.name, count_of(samples.size(), "piece"),
                       count_of(kind.labels, "token"), count_of(kind.classes, "kind"));
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

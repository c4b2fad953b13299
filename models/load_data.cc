#include <kolo/models/load_data.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/models/cifar10.h>
#include <kolo/models/csv.h>
#include <kolo/models/digits.h>
#include <kolo/models/image_folder.h>
#include <kolo/models/mnist.h>
#include <kolo/models/npy.h>
#include <kolo/models/npy_samples.h>
#include <kolo/models/paths.h>
#include <kolo/models/text.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;
using Found = std::shared_ptr<const SampleSet>;

constexpr std::int64_t kMostShift = 4;  // pixels, as is usual on CIFAR-10 (He et al., arXiv:1512.03385, 4.2)
constexpr double kTrainingText = 0.9;   // share of a text; the rest is for testing

using detail::is_file;

std::string last_name(const fs::path& path) {
  const fs::path name = fs::absolute(path).lexically_normal();
  return (name.has_filename() ? name : name.parent_path()).filename().string();
}

template <typename T>
Tensor as_i32(const Tensor& y, const fs::path& path) {
  Tensor made(DType::i32, y.shape());
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const T label = y.data<T>()[i];
    if (!std::in_range<std::int32_t>(label))
      throw InvalidArgumentError("{}: label {} of sample {} is no number of a class", path.string(), label,
                                 i);
    made.data<std::int32_t>()[i] = static_cast<std::int32_t>(label);
  }
  return made;
}

Tensor npy_labels(const fs::path& path) {
  const Tensor y = read_npy(path);
  if (y.shape().rank() != 1 || !is_integer(y.dtype()))
    throw InvalidArgumentError("{}: labels {} {}; they must be whole numbers, [N]", path.string(), y.dtype(),
                               y.shape());
  if (y.dtype() == DType::i64) return as_i32<std::int64_t>(y, path);
  return y.dtype() == DType::u8 ? as_i32<std::uint8_t>(y, path) : y;
}

// How many classes the training labels tell of, which those for testing must be among; 0: there are none.
std::int64_t classes_in(const Tensor& training_labels) {
  const auto labels = training_labels.span<std::int32_t>();
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + std::int64_t{1};
}

// What a model cannot learn from would end with a loss of 0, as if it were trained.
void check_labels(const Tensor& y, const fs::path& path, const std::string& note) {
  const auto labels = y.span<std::int32_t>();
  if (labels.empty() || std::any_of(labels.begin(), labels.end(), [&](auto one) { return one != labels[0]; }))
    return;
  throw InvalidArgumentError("{}: one class: all {} labels are {}{}; there must be at least two classes",
                             path.string(), labels.size(), labels[0], note.empty() ? "" : ", " + note);
}

Found npy_pair(const fs::path& folder, Split split) {
  const fs::path x_path = folder / fmt::format("x_{}.npy", name(split)),
                 y_path = folder / fmt::format("y_{}.npy", name(split)), y_train = folder / "y_train.npy";
  if (split == Split::test && !is_file(x_path) && !is_file(y_path)) return nullptr;
  NpySamples found = read_npy_samples(x_path);
  Tensor y = npy_labels(y_path);
  if (found.x.shape().dim(0) != y.elements())
    throw InvalidArgumentError("{}: samples {} {} for the {} labels of {}; they must be as many",
                               x_path.string(), found.x.dtype(), found.x.shape(), y.elements(),
                               y_path.string());
  if (split == Split::train) check_labels(y, y_path, "");
  const std::int64_t classes = split == Split::test && is_file(y_train) ? classes_in(npy_labels(y_train)) : 0;
  return array_samples(last_name(folder), std::move(found.x), std::move(y), classes, std::move(found.note));
}

// classes: of the training labels, for testing; 0: for training.
Found csv_samples(const fs::path& path, std::int64_t classes = 0) {
  CsvTable table = read_csv(path);
  if (classes == 0) check_labels(table.y, path, table.note);
  return array_samples(last_name(path), std::move(table.x), std::move(table.y), classes,
                       std::move(table.note));
}

Found csv_pair(const fs::path& folder, Split split) {
  const fs::path train = folder / "train.csv", test = folder / "test.csv";
  if (split == Split::train) return csv_samples(train);
  if (!is_file(test)) return nullptr;
  return csv_samples(test, is_file(train) ? classes_in(read_csv(train).y) : 0);
}

Found from_file(const fs::path& path, const DataRequest& request, Split split) {
  if (path.extension() == ".csv") return split == Split::train ? csv_samples(path) : nullptr;
  if (request.input != DType::i32)
    throw InvalidArgumentError("--data {}: a file that is no .csv is a text, and the model takes no tokens",
                               path.string());
  const auto text = std::make_shared<const Text>(Text::read(path.string()));
  const bool training = split == Split::train;
  const auto for_testing = static_cast<double>(text->tokens().size()) * (1 - kTrainingText);
  if (!training && for_testing <= static_cast<double>(request.sample.dim(0) + 1)) return nullptr;
  return text_samples(last_name(path), text,
                      {.length = request.sample.dim(0),
                       .begin = training ? 0 : kTrainingText,
                       .end = training ? kTrainingText : 1});
}

// Grey images may be of signs, and a mirrored digit is none.
Augmentation augmentation_of(const DataRequest& request, std::int64_t channels) {
  return {.most_shift = request.augment ? kMostShift : 0, .mirrored = request.augment && channels > 1};
}

Found images(Dataset dataset, const DataRequest& request) {
  const Augmentation augmentation = augmentation_of(request, dataset.channels());
  return image_samples(std::move(dataset), augmentation);
}

Found photographs(const fs::path& folder, const DataRequest& request, Split split) {
  if (split == Split::test && !has_image_folder_test(folder)) return nullptr;
  if (request.sample.rank() != 3)
    throw InvalidArgumentError("--data {}: photographs, and the model takes {} and not images",
                               folder.string(), request.sample);
  ImageFolder found = list_image_folder(folder, split);
  if (found.classes.size() < 2)
    throw InvalidArgumentError("{}: one class, \"{}\"; there must be a folder for each of at least two",
                               folder.string(), found.classes.front());
  return folder_samples(std::move(found), request.sample, augmentation_of(request, request.sample.dim(0)));
}

// What lies in a folder, the most frequent kinds first: `8 .jpg, 2 folders`.
std::string contents_of(const fs::path& folder) {
  std::map<std::string, int> counts;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const std::string ending = entry->path().extension().string();
    ++counts[entry->is_directory(ignored) ? "folders" : ending.empty() ? "files without an ending" : ending];
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [kind, count] : counts) sorted.emplace_back(-count, kind);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 4) sorted.resize(4);
  std::string text;
  for (const auto& [count, kind] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", -count, kind);
  return text.empty() ? "nothing" : text;
}

[[noreturn]] void throw_unknown_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw NotFoundError("--data {}: no such folder", folder.string());
  throw NotFoundError(
      "--data {}: no data that kolo knows lies there, but {}; a folder holds pictures in a folder for each "
      "class, "
      "x_train.npy and y_train.npy, train.csv, the files of CIFAR-10, or those of MNIST",
      folder.string(), contents_of(folder));
}

Found from_folder(const fs::path& folder, const DataRequest& request, Split split) {
  if (is_cifar10(folder)) {
    if (split == Split::test && !has_cifar10_test(folder)) return nullptr;
    return images(load_cifar10(folder, split), request);
  }
  if (is_file(folder / "x_train.npy") || is_file(folder / "x_test.npy")) return npy_pair(folder, split);
  if (is_file(folder / "train.csv") || is_file(folder / "test.csv")) return csv_pair(folder, split);
  if (is_image_folder(folder)) return photographs(folder, request, split);
  if (!is_mnist(folder)) throw_unknown_folder(folder);
  const auto digits = load_digits(folder.string(), split);
  return digits ? images(*digits, request) : nullptr;
}

}  // namespace

Found load_data(const DataRequest& request, Split split) {
  Found found;
  if (request.data && is_file(*request.data)) found = from_file(*request.data, request, split);
  else if (request.input == DType::i32)
    throw InvalidArgumentError("the model learns from a text: --data must name a file; {}",
                               request.data ? *request.data + " is none" : "there is none");
  else if (request.data && request.data != "generated") found = from_folder(*request.data, request, split);
  else if (const auto digits = load_digits(request.data, split)) found = images(*digits, request);
  if (found && found->kind().dtype != request.input)
    throw InvalidArgumentError("--data {}: {} holds no text, and the model takes tokens", *request.data,
                               found->kind().name);
  return found;
}

std::string description(const SampleSet& samples) {
  const SampleKind& kind = samples.kind();
  const std::string note = kind.note.empty() ? "" : ", " + kind.note;
  if (kind.dtype == DType::i32)
    return fmt::format("{}, {} pieces of {} tokens of {} kinds", kind.name, samples.size(), kind.labels,
                       kind.classes);
  if (kind.shape.rank() == 3)
    return fmt::format("{}, {} images of {} channel{}, {} x {}{}", kind.name, samples.size(),
                       kind.shape.dim(0), kind.shape.dim(0) == 1 ? "" : "s", kind.shape.dim(1),
                       kind.shape.dim(2), note);
  return fmt::format("{}, {} samples of {} numbers, {} classes{}", kind.name, samples.size(),
                     kind.shape.elements(), kind.classes, note);
}

}  // namespace kolo::models

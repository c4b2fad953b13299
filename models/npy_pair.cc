#include <kolo/models/npy_pair.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/data.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/table_samples.h>
#include <kolo/models/unknown_labels.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;

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

// The first element of f32 labels that is neither 0 nor 1.
std::optional<std::int64_t> no_mark_in(const Tensor& y) {
  const auto marks = y.span<float>();
  const auto found = std::find_if(marks.begin(), marks.end(), [](float one) { return one != 0 && one != 1; });
  return found == marks.end() ? std::nullopt : std::optional<std::int64_t>(found - marks.begin());
}

// Whole numbers [N,labels] that are all 0 or 1 are several labels of each sample.
LabelKind npy_label_kind(const Tensor& y) {
  if (is_floating(y.dtype())) return LabelKind::numbers;
  const bool is_table = y.shape().rank() == 2 && y.shape().dim(1) > 1;
  return is_table && !no_mark_in(as_f32(y)) ? LabelKind::several : LabelKind::one_class;
}

// Numbers to find, or several labels: f32 [N,outputs].
Tensor npy_outputs(Tensor y, LabelKind kind, const fs::path& path) {
  const DType dtype = y.dtype();
  y = as_f32(y);
  if (kind == LabelKind::several) {
    if (y.shape().rank() != 2 || y.shape().dim(1) < 2)
      throw InvalidArgumentError(
          "{}: labels {} {}; --loss bce is for several labels of a sample, [N,labels] of 0 and 1",
          path.string(), dtype, y.shape());
    if (const auto wrong = no_mark_in(y))
      throw InvalidArgumentError(
          "{}: label {} of sample {}; --loss bce takes 0 and 1, and --loss mse numbers", path.string(),
          y.data<float>()[*wrong], *wrong / y.shape().dim(1));
    return y;
  }
  if (y.shape().rank() == 1) return y.reshaped({y.shape().dim(0), 1});
  if (y.shape().rank() != 2)
    throw InvalidArgumentError("{}: numbers to find {} {}; they must be [N] or [N,outputs]", path.string(),
                               dtype, y.shape());
  return y;
}

Tensor npy_labels(Tensor y, const fs::path& path) {
  if (y.shape().rank() == 2 && y.shape().dim(1) == 1)
    y = y.reshaped({y.shape().dim(0)});  // as Keras has them
  if (y.shape().rank() != 1 || (!is_integer(y.dtype()) && y.dtype() != DType::boolean))
    throw InvalidArgumentError(
        "{}: labels {} {}; classes are whole numbers, [N], several labels of a sample 0 and 1, "
        "[N,labels], and --loss mse finds numbers",
        path.string(), y.dtype(), y.shape());
  if (y.dtype() == DType::i64) return as_i32<std::int64_t>(y, path);
  if (y.dtype() == DType::boolean) {
    Tensor labels(DType::i32, y.shape());
    std::copy_n(y.data<bool>(), y.elements(), labels.data<std::int32_t>());
    return labels;
  }
  return y.dtype() == DType::u8 ? as_i32<std::uint8_t>(y, path) : y;
}

// Of several labels: 1 for one label of each sample.
bool is_one_hot(const Tensor& y) {
  if (y.shape().rank() != 2 || no_mark_in(y)) return false;
  const std::int64_t labels = y.shape().dim(1);
  for (std::int64_t i = 0; i < y.shape().dim(0); ++i)
    if (std::count(y.data<float>() + i * labels, y.data<float>() + (i + 1) * labels, 1.0F) != 1) return false;
  return true;
}

// Of numbers to find that may be meant as labels: floats that are all 0 or 1, and each of them is there.
// Those with one 1 in each row have their own warning.
std::string warning_of_marks(const Tensor& of_file, const Tensor& y) {
  const auto numbers = y.span<float>();
  const auto ones = std::count(numbers.begin(), numbers.end(), 1.0F);
  if (!is_floating(of_file.dtype()) || no_mark_in(y) || ones == 0 || ones == std::ssize(numbers) ||
      (y.shape().dim(1) > 1 && is_one_hot(y)))
    return "";
  return fmt::format("all numbers are 0 or 1 and are numbers to find, as floats are; if they are {}",
                     y.shape().dim(1) == 1 ? "classes, give whole numbers (numpy: y.astype(int))"
                                           : "labels, --loss bce takes them, or whole numbers (numpy: "
                                             "y.astype(int))");
}

// Of the training, whose labels say which classes there are.
void check_not_negative(const Tensor& y, const fs::path& path) {
  const auto labels = y.span<std::int32_t>();
  const auto least = std::min_element(labels.begin(), labels.end());
  if (least != labels.end() && *least < 0)
    throw InvalidArgumentError(
        "{}: label {} of sample {}; classes count from 0 (numpy: np.unique(y, return_inverse=True)[1])",
        path.string(), *least, least - labels.begin());
}

// "1" … "K" for labels that are 1 … K, each of them there; empty for others.
std::vector<std::string> names_from_one(const Tensor& y) {
  const auto labels = y.span<std::int32_t>();
  const std::set<std::int32_t> found(labels.begin(), labels.end());
  std::vector<std::string> names;
  if (found.size() < 2 || *found.begin() != 1 || *found.rbegin() != std::ssize(found)) return names;
  for (const std::int32_t label : found) names.push_back(std::to_string(label));
  return names;
}

// Arrays have no names: whole numbers are the places of classes that have some.
bool are_places(const std::vector<std::string>& names, const Tensor& y) {
  const auto is_number = [](const std::string& name) { return parse_int64(name).has_value(); };
  const auto labels = y.span<std::int32_t>();
  return !names.empty() && std::none_of(names.begin(), names.end(), is_number) &&
         std::all_of(labels.begin(), labels.end(),
                     [&](std::int32_t label) { return label >= 0 && label < std::ssize(names); });
}

std::string text_of_places(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, names[i]);
  if (names.size() > kMostNamed) text += fmt::format(" … {} {}", names.size() - 1, names.back());
  return fmt::format("labels are numbers, and are taken for the training's classes in their order: {}", text);
}

// Labels become places in `names`.
void number_labels(Tensor& y, const std::vector<std::string>& names, const fs::path& path,
                   const std::string& trained) {
  UnknownLabels unknown{.file = path.string(), .trained = trained, .counts = {}, .classes = names};
  std::set<std::int32_t> others;
  for (std::int32_t& label : y.span<std::int32_t>()) {
    const std::string text = std::to_string(label);
    const auto known = std::find(names.begin(), names.end(), text);
    if (known == names.end()) {
      ++unknown.counts[text];
      continue;
    }
    label = static_cast<std::int32_t>(known - names.begin());
    others.insert(label);
  }
  for (const std::int32_t label : others) unknown.others.push_back(names[static_cast<std::size_t>(label)]);
  if (!unknown.counts.empty())
    throw InvalidArgumentError("{}: label {} {}", path.string(), unknown.counts.begin()->first,
                               unknown_labels_text(unknown));
}

// Labels are no part of a sample: with others it was learnt from as well.
std::vector<std::string> seen_by(LearntPart& learnt, const Tensor& x, Split split) {
  if (split == Split::test) return learnt.warnings_of(contents_of_array(x), "x_test.npy");
  learnt.learn(contents_of_array(x), "x_train.npy");
  return {};
}

}  // namespace

std::shared_ptr<const SampleSet> npy_pair(const fs::path& folder, const DataRequest& request, Split split,
                                          LearntPart& learnt) {
  const fs::path x_path = folder / fmt::format("x_{}.npy", name(split)),
                 y_path = folder / fmt::format("y_{}.npy", name(split)), y_train = folder / "y_train.npy";
  if (split == Split::test && !is_file(x_path) && !is_file(y_path)) return nullptr;
  NpySamples found = read_npy_samples(x_path);
  const Tensor of_file = read_npy(y_path);
  const NumberSizes sizes = sizes_of_numbers(found.x);
  std::vector<std::string> warnings = seen_by(learnt, found.x, split);
  if (!found.warning.empty()) warnings.push_back(fmt::format("{}: {}", x_path.string(), found.warning));
  const LabelKind label_kind = request.label_kind.value_or(npy_label_kind(of_file));
  if (label_kind != LabelKind::one_class) {
    Tensor outputs = npy_outputs(of_file, label_kind, y_path);
    if (!request.label_kind && is_one_hot(outputs))
      warnings.push_back(fmt::format(
          "{}: each sample has exactly one of {} labels; if these are classes, give their numbers "
          "(numpy: y.argmax(1)), and the model's answers are shares that add up to 1",
          y_path.string(), outputs.shape().dim(1)));
    if (std::string text = request.label_kind ? "" : warning_of_marks(of_file, outputs); !text.empty())
      warnings.push_back(fmt::format("{}: {}", y_path.string(), text));
    return array_samples_of({.name = last_name(folder),
                             .shape = {},
                             .label_kind = label_kind,
                             .note = found.note,
                             .warnings = warnings,
                             .largest = sizes.largest,
                             .least = sizes.least},
                            std::move(found.x), std::move(outputs));
  }
  Tensor y = npy_labels(of_file, y_path);
  if (request.classes == 0) check_not_negative(y, y_path);
  if (found.x.shape().dim(0) != y.elements())
    throw InvalidArgumentError("{}: samples {} {} for the {} labels of {}; they must be as many",
                               x_path.string(), found.x.dtype(), found.x.shape(), y.elements(),
                               y_path.string());
  if (split == Split::train) check_labels(y, y_path, "");
  const bool is_beside =
      request.with_train || (request.classes == 0 && split == Split::test && is_file(y_train));
  const std::string trained = is_beside ? y_train.filename().string() : "";
  SampleKind kind{.name = last_name(folder),
                  .shape = {},
                  .classes = request.classes,
                  .note = found.note,
                  .class_names = request.class_names,
                  .warnings = warnings,
                  .largest = sizes.largest,
                  .least = sizes.least};
  if (request.classes == 0) {  // nobody has trained yet: by the training's labels, where they are there
    const Tensor all = split == Split::test && is_file(y_train) ? npy_labels(read_npy(y_train), y_train) : y;
    kind.class_names = names_from_one(all);
    const auto labels = all.span<std::int32_t>();
    if (!labels.empty()) kind.classes = *std::max_element(labels.begin(), labels.end()) + std::int64_t{1};
  }
  if (are_places(kind.class_names, y)) {
    kind.warnings.push_back(fmt::format("{}: {}", y_path.string(), text_of_places(kind.class_names)));
  } else if (!kind.class_names.empty()) {
    number_labels(y, kind.class_names, y_path, trained);
    kind.classes = std::ssize(kind.class_names);
    kind.note +=
        fmt::format("{}labels {} to {} are the classes (predictions name them so)",
                    kind.note.empty() ? "" : ", ", kind.class_names.front(), kind.class_names.back());
  }
  if (kind.class_names.empty()) check_known_labels(y, kind.classes, y_path.string(), trained);
  return array_samples_of(std::move(kind), std::move(found.x), std::move(y));
}

}  // namespace kolo::models::detail

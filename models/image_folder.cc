#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/keep_freed_memory.h>
#include <kolo/models/alike_names.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/own_files.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;

using detail::is_folder;

// Names in `folder` for which `keep` is true, sorted by their bytes, so that they are alike on all machines.
template <typename Keep>
std::vector<fs::path> sorted_entries(const fs::path& folder, Keep keep) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (!entry->path().filename().string().starts_with('.') && keep(*entry)) found.push_back(entry->path());
  if (error) throw UnavailableError("{}: cannot be read: {}", folder.string(), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

// Folders on the way to one, with it, as they are called without links.
using Way = std::vector<fs::path>;

Way way_to(const fs::path& folder) {
  std::error_code ignored;
  return {fs::canonical(folder, ignored)};
}

// A link to one of them, or above it: pictures of all classes would be those of this one, again and again.
bool leads_up(const fs::directory_entry& entry, const Way& way) {
  std::error_code ignored;
  if (!entry.is_symlink(ignored)) return false;
  const fs::path to = fs::canonical(entry.path(), ignored);
  return std::any_of(way.begin(), way.end(), [&](const fs::path& one) {
    return std::mismatch(to.begin(), to.end(), one.begin(), one.end()).first == to.end();
  });
}

std::string kind_left_out(const fs::path& path) {
  return is_image_name(path) ? "broken links" : detail::kind_of_file(path);
}

std::vector<fs::path> images_in(const fs::path& folder, LeftOut& left_out, Way way) {
  constexpr std::size_t kDeepest = 9;
  std::vector<fs::path> folders;
  std::vector<fs::path> images = sorted_entries(folder, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (is_image_name(entry.path()) && entry.is_regular_file(ignored)) return true;
    if (entry.is_directory(ignored) && leads_up(entry, way)) ++left_out[detail::kLinksUp];
    else if (entry.is_directory(ignored) && detail::is_hidden_folder(entry.path()))
      ++left_out["folders of hidden files"];
    else if (entry.is_directory(ignored)) folders.push_back(entry.path());
    else ++left_out[kind_left_out(entry.path())];
    return false;
  });
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) {
    if (way.size() == kDeepest) {
      left_out["folders too deep"] += std::ssize(folders);
      break;
    }
    way.push_back(way_to(below).front());
    const std::vector<fs::path> found = images_in(below, left_out, way);
    way.pop_back();
    images.insert(images.end(), found.begin(), found.end());
  }
  return images;
}

// outputs: as list_image_folder has them.
std::vector<fs::path> class_folders(const fs::path& folder, const std::vector<std::string>& outputs = {}) {
  const Way way = way_to(folder);
  const auto is_output = [&](const fs::path& one) {
    return detail::is_own_folder(one) ||
           std::any_of(outputs.begin(), outputs.end(), [&](const std::string& output) {
             std::error_code ignored;
             return fs::equivalent(one, output, ignored);
           });
  };
  LeftOut ignored;
  return sorted_entries(folder, [&](const fs::directory_entry& entry) {
    return is_folder(entry.path()) && !leads_up(entry, way) && !detail::is_hidden_folder(entry.path()) &&
           (!is_output(entry.path()) || !images_below(entry.path(), ignored).empty());
  });
}

fs::path train_folder(const fs::path& folder) {
  return is_folder(folder / "train") ? folder / "train" : folder;
}

std::optional<fs::path> test_folder(const fs::path& folder, Split split) {
  if (!is_folder(folder / "train")) return std::nullopt;
  for (const char* const name : detail::folders_of(split))
    if (is_folder(folder / name)) return folder / name;
  return std::nullopt;
}

// What lies beside the folders that are read.
void add_beside(const fs::path& folder, const fs::path& of_split, Split split,
                const std::vector<fs::path>& taken, LeftOut& left_out) {
  std::vector<std::string> classes;
  for (const fs::path& one : taken) classes.push_back(one.filename().string());
  LeftOut beside;
  detail::add_left_out(of_split, classes, beside);
  if (split == Split::train && of_split != folder) {
    std::vector<std::string> splits = {"train"};
    for (const Split other : {Split::validation, Split::test})
      if (const auto found = test_folder(folder, other)) splits.push_back(found->filename().string());
    detail::add_left_out(folder, splits, beside);
  }
  for (const auto& [kind, count] : beside)
    left_out[is_image_name("x" + kind) ? "pictures in no folder of a class" : kind] += count;
}

// Folders of a class, where all of its pictures lie in several of these.
std::vector<std::string> folders_within(const fs::path& one, const std::vector<fs::path>& files) {
  std::set<std::string> folders;
  for (const fs::path& file : files) {
    const fs::path below = file.lexically_relative(one);
    if (!below.has_parent_path()) return {};
    folders.insert(below.begin()->string());
  }
  if (folders.size() < 2) return {};
  return {folders.begin(), folders.end()};
}

// within: what folders_within has found of each class.
std::vector<std::string> warnings_of_levels(const std::map<fs::path, std::vector<std::string>>& within) {
  constexpr std::size_t kMostNamed = 4;
  const auto first =
      std::find_if(within.begin(), within.end(), [](const auto& one) { return !one.second.empty(); });
  if (first == within.end()) return {};
  const auto& [folder, folders] = *first;
  std::vector<std::string> named(
      folders.begin(), folders.begin() + static_cast<std::ptrdiff_t>(std::min(folders.size(), kMostNamed)));
  if (folders.size() > kMostNamed) named.emplace_back("…");
  const bool are_alike = within.size() > 1 && std::all_of(within.begin(), within.end(), [&](const auto& one) {
                           return one.second == first->second;
                         });
  if (are_alike)
    return {
        fmt::format("the folders of {} are taken for classes, and all of them hold the same folders ({}); if "
                    "these are the classes, "
                    "call the folders above them train and test",
                    folder.parent_path().string(), fmt::join(named, ", "))};
  return {fmt::format(
      "the folder {} is taken for one class, and its pictures lie in {} folders ({}); --data {} takes "
      "these for classes",
      folder.string(), folders.size(), fmt::join(named, ", "), folder.string())};
}

std::optional<float> largest_number(const ImageFolder& folder) {
  if (!folder.numbers) return std::nullopt;
  float largest = 0;
  for (const std::vector<float>& numbers : *folder.numbers)
    for (const float number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

class FolderSamples final : public FileSamples {
 public:
  FolderSamples(ImageFolder folder, const Shape& shape, const Augmentation& augmentation)
      : FileSamples({.name = folder.name,
                     .shape = shape,
                     .classes = static_cast<std::int64_t>(folder.classes.size()),
                     .label_kind = folder.numbers   ? LabelKind::numbers
                                   : folder.several ? LabelKind::several
                                                    : LabelKind::one_class,
                     .decoded = true,
                     .are_pixels = detail::keeps_pixels(augmentation),
                     .note = folder.left_out,
                     .class_names = folder.classes,
                     .label_table = folder.label_table,
                     .warnings = folder.warnings,
                     .largest = 1,
                     .least = 0,
                     .largest_label = largest_number(folder)}),
        folder_(std::move(folder)),
        augmentation_(augmentation) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(folder_.files.size()); }
  std::vector<std::int64_t> class_counts() const override {
    if (folder_.numbers) return {};
    std::vector<std::int64_t> counts(folder_.classes.size());
    for (const std::int32_t label : folder_.labels) ++counts[static_cast<std::size_t>(label)];
    for (const auto& labels : folder_.several.value_or(std::vector<std::vector<std::int32_t>>()))
      for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
    return counts;
  }
  void check(std::int64_t index) const override {
    check_image(folder_.files[static_cast<std::size_t>(index)]);
  }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    const Shape& shape = kind().shape;
    const auto i = static_cast<std::size_t>(index);
    const std::int64_t channels = shape.dim(0), height = shape.dim(1), width = shape.dim(2);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.elements()));
    if (random != nullptr && augmentation_.least_area > 0) {
      const PicturePart part = read_image_part(
          folder_.files[i], height, width, [&](std::int64_t whole_height, std::int64_t whole_width) {
            return detail::draw_crop(augmentation_.least_area, whole_height, whole_width, *random);
          });
      resize_part(part.picture, part.box, channels, height, width, pixels.data());
    } else {
      resize_and_crop(read_image(folder_.files[i], height, width), channels, height, width, pixels.data());
    }
    detail::write_image(pixels.data(), shape, detail::draw_change(augmentation_, channels, random),
                        batch.samples, place);
    if (!folder_.several && !folder_.numbers) {
      batch.labels.data<std::int32_t>()[place] = folder_.labels[i];
      return;
    }
    float* const row = batch.labels.data<float>() + place * kind().classes;
    if (folder_.numbers) std::copy((*folder_.numbers)[i].begin(), (*folder_.numbers)[i].end(), row);
    else mark(row, (*folder_.several)[i]);
  }

 private:
  void mark(float* row, const std::vector<std::int32_t>& labels) const {
    std::fill_n(row, kind().classes, 0.0F);
    for (const std::int32_t label : labels) row[label] = 1;
  }

  ImageFolder folder_;
  Augmentation augmentation_;
};

}  // namespace

std::vector<fs::path> images_below(const fs::path& folder, LeftOut& left_out) {
  return images_in(folder, left_out, way_to(folder));
}

bool is_image_folder(const fs::path& folder) {
  if (!is_folder(folder)) return false;
  const auto classes = class_folders(train_folder(folder));
  LeftOut ignored;
  return std::any_of(classes.begin(), classes.end(),
                     [&](const fs::path& one) { return !images_below(one, ignored).empty(); });
}

bool has_image_folder_test(const fs::path& folder) { return test_folder(folder, Split::test).has_value(); }

ImageFolder list_image_folder(const fs::path& folder, Split split, const std::vector<std::string>& outputs) {
  const std::optional<fs::path> of_split =
      split == Split::train ? train_folder(folder) : test_folder(folder, split);
  if (!of_split || !is_folder(*of_split))
    throw NotFoundError("{}: there is no folder {} of images in it", folder.string(),
                        split == Split::train ? "train" : "test, val, valid or validation");
  ImageFolder found;
  found.name = fs::weakly_canonical(folder).filename().string();
  LeftOut left_out;
  std::map<fs::path, std::vector<std::string>> within;
  for (const fs::path& one : class_folders(train_folder(folder), outputs))
    found.classes.push_back(one.filename().string());
  const std::vector<fs::path> classes = class_folders(*of_split, outputs);
  for (const fs::path& one : classes) {
    const auto known = std::lower_bound(found.classes.begin(), found.classes.end(), one.filename().string());
    const std::vector<fs::path> files = images_below(one, left_out);
    if (known == found.classes.end() || *known != one.filename().string())
      throw InvalidArgumentError("{}: a class of {} that {} has not; both must have the same folders",
                                 one.string(), count_of(files.size(), "picture"),
                                 train_folder(folder).string());
    if (files.empty() && split == Split::train)
      throw InvalidArgumentError(
          "{}: a class without images; its files must end in {}, or --data names the wrong "
          "folder: each folder in {} is taken for a class",
          one.string(), image_endings(), of_split->string());
    if (split == Split::train) within.emplace(one, folders_within(one, files));
    found.files.insert(found.files.end(), files.begin(), files.end());
    found.labels.insert(found.labels.end(), files.size(),
                        static_cast<std::int32_t>(known - found.classes.begin()));
  }
  if (found.files.empty()) throw InvalidArgumentError("{}: there are no images in it", of_split->string());
  add_beside(folder, *of_split, split, classes, left_out);
  found.left_out = left_out_text(left_out);
  found.warnings = warnings_of_levels(within);
  if (std::string alike = detail::warning_of_alike("classes", found.classes);
      split == Split::train && !alike.empty())
    found.warnings.push_back(std::move(alike));
  const auto validation = test_folder(folder, Split::validation), test = test_folder(folder, Split::test);
  if (split == Split::train && validation != test)
    found.left_out += fmt::format("{}{}/ for testing while it trains, and {}/ with --evaluate",
                                  found.left_out.empty() ? "" : ", ", validation->filename().string(),
                                  test->filename().string());
  return found;
}

std::shared_ptr<const SampleSet> folder_samples(ImageFolder folder, const Shape& shape,
                                                const Augmentation& augmentation) {
  if (shape.rank() != 3 || (shape.dim(0) != 1 && shape.dim(0) != 3) || shape.dim(1) < 1 || shape.dim(2) < 1)
    throw InvalidArgumentError("{}: images become [1,H,W] or [3,H,W]; {} was asked for", folder.name, shape);
  detail::check_augmentation(augmentation, shape.dim(0));
  keep_freed_memory();  // each picture is decoded into memory of its own
  return std::make_shared<FolderSamples>(std::move(folder), shape, augmentation);
}

}  // namespace kolo::models

#include <kolo/models/picture_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/seen_samples.h>
#include <kolo/models/shared_samples.h>
#include <kolo/models/unknown_labels.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;
using Found = std::shared_ptr<const SampleSet>;

Found samples_of_pictures(ImageFolder folder, const DataRequest& request) {
  if (request.sample.rank() != 3)
    throw InvalidArgumentError(
        "--data {}: photographs, and the model takes {} and not images; those that do are {}", *request.data,
        request.sample, models_for_images());
  if (folder.classes.size() < 2 && !folder.numbers)
    throw InvalidArgumentError(
        "{}: one class, \"{}\"; there must be at least two, each with pictures of its own{}", *request.data,
        folder.classes.front(), folder.warnings.empty() ? "" : "; " + folder.warnings.front());
  return folder_samples(std::move(folder), request.sample, request.augmentation);
}

// Labels become places in `names`.
void number_classes(ImageFolder& folder, const std::vector<std::string>& names) {
  if (folder.numbers) return;
  UnknownLabels unknown{.file = folder.name, .counts = {}, .classes = names};
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
                               unknown_labels_text(unknown));
  folder.classes = names;
}

// Of the training. Those that have no names are called by their numbers, as folders may be.
std::vector<std::string> known_names(const DataRequest& request) {
  std::vector<std::string> names = request.class_names;
  if (!names.empty() || request.label_kind != LabelKind::one_class) return names;
  for (std::int64_t i = 0; i < request.classes; ++i) names.push_back(std::to_string(i));
  return names;
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

// Where it lies below `folder`, wherever that is. A table may name pictures by absolute paths.
std::string name_below(const fs::path& file, const fs::path& folder) {
  if (file.is_absolute() == folder.is_absolute()) return file.lexically_relative(folder).generic_string();
  const auto whole = [](const fs::path& path) { return fs::absolute(path).lexically_normal(); };
  return whole(file).lexically_relative(whole(folder)).generic_string();
}

std::uint64_t picture_digest(const fs::path& file) {
  std::vector<char> piece(std::size_t{1} << 16);
  std::uint64_t digest = kDigestOfNothing;
  for (std::ifstream stream(file, std::ios::binary); stream;) {
    stream.read(piece.data(), std::ssize(piece));
    const auto read = static_cast<std::size_t>(stream.gcount());
    digest = digest_of_bytes(std::as_bytes(std::span(piece).first(read)), digest);
  }
  return digest;
}

// Of a few places of the file: of many pictures nobody reads more before a training.
std::uint64_t digest_of_parts(const fs::path& file) {
  constexpr std::uint64_t kPart = 4096, kParts = 4;
  std::error_code ignored;
  const std::uint64_t bytes = fs::file_size(file, ignored);
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> part(kPart * kParts);
  std::uint64_t digest = kDigestOfNothing;
  const auto read = [&](std::uint64_t begin, std::uint64_t count) {
    stream.seekg(static_cast<std::streamoff>(begin));
    stream.read(part.data(), static_cast<std::streamsize>(count));
    const auto got = static_cast<std::size_t>(stream.gcount());
    digest = digest_of_bytes(std::as_bytes(std::span(part).first(got)), digest);
  };
  if (bytes <= part.size()) read(0, bytes);
  else
    for (std::uint64_t i = 1; i <= kParts; ++i) read(i * (bytes - kPart) / kParts, kPart);
  return digest;
}

// A picture is the same under another name, and another one under the same.
SampleContents picture_contents(std::vector<fs::path> files) {
  const auto all = std::make_shared<const std::vector<fs::path>>(std::move(files));
  const auto file = [all](std::int64_t place) { return (*all)[static_cast<std::size_t>(place)]; };
  return {.count = std::ssize(*all),
          .digest = [file](std::int64_t place) { return picture_digest(file(place)); },
          .bytes = [file](std::int64_t place) -> std::uint64_t {
            std::error_code ignored;
            return fs::file_size(file(place), ignored);
          },
          .part = [file](std::int64_t place) { return digest_of_parts(file(place)); }};
}

// A tenth is for testing where nothing else is.
DataSplits shared_out_pictures(ImageFolder all, const fs::path& folder, const DataRequest& request,
                               Wanted wanted) {
  const SampleContents contents = picture_contents(all.files);
  std::vector<std::uint64_t> keys;
  for (const fs::path& file : all.files) {
    const std::string name = name_below(file, folder);
    keys.push_back(digest_of_bytes(std::as_bytes(std::span(name))));
  }
  const std::vector<std::int64_t> testing = drawn_for_testing(keys, request.seed, all.labels);
  if (!is_shared_out(request, wanted, testing, contents, all.warnings)) {
    add_note(all.left_out, fmt::format("all {} pictures for testing", contents.count));
    return {.train = nullptr, .test = samples_of_pictures(std::move(all), request)};
  }
  if (!testing.empty())
    add_note(all.left_out, fmt::format("{} of {} pictures for testing by the seed {}", testing.size(),
                                       contents.count, request.seed));
  add_note(all.left_out, note_of_copies(testing, contents, picture_contents(part_of(all, testing).files)));
  DataSplits splits{.train = nullptr, .test = nullptr, .digests = digests_later(testing, contents)};
  for (const std::int64_t place : testing)
    splits.drawn.push_back(name_below(all.files[static_cast<std::size_t>(place)], folder));
  if (wanted.test && !testing.empty()) splits.test = samples_of_pictures(part_of(all, testing), request);
  if (wanted.train)
    splits.train = samples_of_pictures(part_of(all, others_than(testing, contents.count)), request);
  return splits;
}

Found learnt(ImageFolder part, const DataRequest& request, LearntPart& learnt) {
  learnt.learn(picture_contents(part.files), "the training's part");
  return samples_of_pictures(std::move(part), request);
}

// A part for testing: of other data than the training's, or beside the pictures that are to be learnt from.
Found tested(ImageFolder part, const DataRequest& request, const LearntPart& learnt) {
  for (std::string& warning : learnt.warnings_of(picture_contents(part.files), part.name))
    part.warnings.push_back(std::move(warning));
  return samples_of_pictures(std::move(part), request);
}

// With train/ and maybe a part for testing.
Found part_of_classes(const fs::path& folder, const DataRequest& request, Split split, LearntPart& learnt) {
  if (split == Split::train) {
    return detail::learnt(list_image_folder(folder, split, request.outputs), request, learnt);
  }
  if (has_image_folder_test(folder))
    return tested(list_image_folder(folder, split, request.outputs), request, learnt);
  if (!request.whole || request.is_own) return nullptr;
  ImageFolder all = list_image_folder(folder, Split::train, request.outputs);
  if (const auto names = known_names(request); !names.empty()) number_classes(all, names);
  add_note(all.left_out, "all pictures for testing");
  return tested(std::move(all), request, learnt);
}

}  // namespace

DataSplits named_pictures(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  const bool has_test = has_named_images_test(folder);
  const std::vector<std::string> names = known_names(request);
  NamedImagesOptions options{.target = request.table.target,
                             .label_kind = request.label_kind,
                             .is_known = request.classes > 0,
                             .known = request.label_table};
  DataSplits splits;
  ImageFolder all;
  if (wanted.train || !has_test || !options.is_known) all = list_named_images(folder, Split::train, options);
  if (!names.empty() && !all.files.empty()) number_classes(all, names);
  if (!has_test) return shared_out_pictures(std::move(all), folder, request, wanted);
  if (!options.is_known)
    options.label_kind = all.numbers   ? LabelKind::numbers
                         : all.several ? LabelKind::several
                                       : LabelKind::one_class;
  options.is_known = true;
  if (!options.known) options.known = all.label_table;
  ImageFolder test;
  if (wanted.test) test = list_named_images(folder, evaluated(wanted), options);
  if (wanted.test) number_classes(test, names.empty() ? all.classes : names);
  LearntPart part(request);
  if (wanted.train) splits.train = learnt(std::move(all), request, part);
  if (wanted.test) splits.test = tested(std::move(test), request, part);
  splits.digests = part.digests();
  return splits;
}

DataSplits classed_pictures(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  if (is_folder(folder / "train")) {
    LearntPart learnt(request);
    DataSplits splits = each_split(request, wanted, [&](const DataRequest& asked, Split split) {
      return part_of_classes(folder, asked, split == Split::train ? split : evaluated(wanted), learnt);
    });
    splits.digests = learnt.digests();
    return splits;
  }
  ImageFolder all = list_image_folder(folder, Split::train, request.outputs);
  if (const auto names = known_names(request); !names.empty()) number_classes(all, names);
  return shared_out_pictures(std::move(all), folder, request, wanted);
}

}  // namespace kolo::models::detail

#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/own_files.h>
#include <kolo/models/paths.h>
#include <kolo/models/picture_labels.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/table_samples.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;
using detail::CsvFile;
using detail::Fields;
using detail::is_file;
using detail::is_folder;

struct Place {
  fs::path table, pictures;  // the file, and the folder below which pictures lie
};

bool has_pictures(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_image_name(entry->path()) && is_file(entry->path())) return true;
  return false;
}

// The only folder in this one that has pictures, as images/ beside labels.csv.
std::optional<fs::path> folder_of_pictures(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_folder(entry->path()) && has_pictures(entry->path())) found.push_back(entry->path());
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

// The only table of a folder, and the pictures in that folder or in one beside the table.
std::optional<Place> table_in(const fs::path& folder) {
  const std::vector<fs::path> tables = detail::tables_in(folder);
  if (tables.size() != 1) return std::nullopt;
  if (has_pictures(folder)) return Place{.table = tables.front(), .pictures = folder};
  const auto beside = folder_of_pictures(folder);
  return beside ? std::optional(Place{.table = tables.front(), .pictures = *beside}) : std::nullopt;
}

std::optional<Place> table_of(const fs::path& folder, Split split) {
  const fs::path train = folder / "train";
  if (!is_folder(train)) return split == Split::train ? table_in(folder) : std::nullopt;
  if (split == Split::train) {
    if (auto within = table_in(train)) return within;
    if (is_file(folder / "train.csv") && has_pictures(train))
      return Place{.table = folder / "train.csv", .pictures = train};
    return std::nullopt;
  }
  for (const char* const name : detail::folders_of(split))
    if (auto found = table_in(folder / name)) return found;
  return std::nullopt;
}

char upper_case(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// With or without its ending; nothing where there is no such picture.
std::optional<fs::path> picture_in(const fs::path& folder, const std::string& name) {
  if (name.empty()) return std::nullopt;
  const fs::path plain = folder / name;
  if (is_image_name(plain) && is_file(plain)) return plain;
  for (const bool upper : {false, true})
    for (std::string ending : kImageEndings) {
      if (upper) std::transform(ending.begin(), ending.end(), ending.begin(), upper_case);
      if (const fs::path whole = folder / (name + ending); is_file(whole)) return whole;
    }
  return std::nullopt;
}

// A table may name a picture by its absolute path, and --data the folder by another one.
fs::path whole(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

class NamedImages {
 public:
  NamedImages(const Place& place, const NamedImagesOptions& options)
      : folder_(place.pictures), options_(options), file_(place.table) {}

  ImageFolder read() {
    find_columns();
    detail::PictureLabels labels(labels_, names_);
    for (Fields fields; file_.next(fields);) {
      take(fields);
      labels.add(file_, fields);
    }
    if (found_.files.empty()) throw InvalidArgumentError("{}: there are no samples in it", file_.name());
    labels.finish(options_, found_);
    found_.left_out = notes(labels.note());
    if (names_.size() > 2 && detail::are_predictions(file_.name()) &&
        (names_[2] == "share" || names_[2] == "probability"))
      found_.warnings.push_back(
          fmt::format("{} is a table that --predict has written, and a model's answers are taken for labels",
                      file_.name()));
    return std::move(found_);
  }

 private:
  // The first row, or the second one where the first holds names, tells which column names pictures.
  void find_columns() {
    Fields fields;
    if (!file_.next(fields)) throw InvalidArgumentError("{}: there are no samples in it", file_.name());
    file_.columns = fields.size();
    std::vector<std::string> first;
    for (const std::string_view field : fields) first.push_back(unquoted(field));
    picture_ = column_of_pictures(fields);
    if (!picture_) {
      names_ = first;
      if (file_.next(fields)) picture_ = column_of_pictures(fields);
    }
    if (!picture_)
      throw InvalidArgumentError(
          "{}, line {}: no column holds the name of a picture in {}; there must be one, and one of classes",
          file_.name(), file_.line(), folder_.string());
    file_.rewind();
    file_.has_names = !names_.empty();
    if (file_.has_names) file_.next(fields);
    if (file_.columns < 2)
      throw InvalidArgumentError("{}: one column; there must be one of pictures and one of classes",
                                 file_.name());
    labels_ = label_columns({first.begin(), first.end()});
  }

  // By its way from the folder of pictures, or from the table.
  std::optional<fs::path> picture_named(const std::string& name) const {
    const auto found = picture_in(folder_, name);
    return found ? found : picture_in(fs::path(file_.name()).parent_path(), name);
  }

  std::optional<std::size_t> column_of_pictures(const Fields& fields) const {
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (picture_named(unquoted(fields[i]))) return i;
    return std::nullopt;
  }

  std::vector<std::size_t> label_columns(const Fields& columns) const {
    std::vector<std::size_t> labels = {*picture_ + 1 == file_.columns ? *picture_ - 1 : file_.columns - 1};
    if (!options_.target.empty()) labels = detail::target_places(file_, columns, options_.target);
    else if (const auto usual = detail::usual_label(columns, picture_); usual && file_.has_names)
      labels = {*usual};
    if (std::find(labels.begin(), labels.end(), *picture_) != labels.end())
      throw InvalidArgumentError(
          "{}: --target {}: column {} holds the names of the pictures; name another one", file_.name(),
          options_.target, *picture_ + 1);
    return labels;
  }

  void take(const Fields& fields) {
    file_.check_columns(fields);
    const std::string name = unquoted(fields[*picture_]);
    const auto picture = picture_named(name);
    if (!picture && is_file(folder_ / name))
      throw InvalidArgumentError(
          "{}, line {}: {:?} is no picture that kolo reads ({}); convert it, or take the line out",
          file_.name(), file_.line(), name, image_endings());
    if (!picture)
      throw InvalidArgumentError("{}, line {}: there is no picture {:?} in {}", file_.name(), file_.line(),
                                 name, folder_.string());
    if (!taken_.insert(whole(*picture)).second)
      throw InvalidArgumentError("{}, line {}: the picture {:?} has a line before this one; each has one",
                                 file_.name(), file_.line(), name);
    found_.files.push_back(*picture);
  }

  std::string column(std::size_t place) const {
    return detail::column_text(place, names_.empty() ? "" : names_[place]);
  }

  std::string notes(const std::string& of_labels) const {
    std::string text = fmt::format("pictures: column {} of {}, {}", column(*picture_),
                                   fs::path(file_.name()).filename().string(), of_labels);
    LeftOut left_out;
    const std::vector<fs::path> there = images_below(folder_, left_out);
    const std::string own = detail::kind_of_file(file_.name());
    if (fs::path(file_.name()).parent_path() == folder_ && --left_out[own] == 0) left_out.erase(own);
    const auto unnamed = std::count_if(there.begin(), there.end(),
                                       [&](const fs::path& one) { return !taken_.contains(whole(one)); });
    if (unnamed > 0) left_out["pictures that it does not name"] += unnamed;
    for (std::size_t i = 0; i < file_.columns; ++i)
      if (i != *picture_ && std::find(labels_.begin(), labels_.end(), i) == labels_.end())
        text += ", left out: column " + column(i);
    const std::string rest = left_out_text(left_out);
    return rest.empty() ? text : text + ", " + rest;
  }

  fs::path folder_;
  const NamedImagesOptions& options_;
  CsvFile file_;
  std::vector<std::string> names_;  // of the columns; empty: there are none
  std::optional<std::size_t> picture_;
  std::vector<std::size_t> labels_;
  std::set<fs::path> taken_;
  ImageFolder found_;
};

}  // namespace

bool is_named_images(const fs::path& folder) { return table_of(folder, Split::train).has_value(); }
bool has_named_images_test(const fs::path& folder) { return table_of(folder, Split::test).has_value(); }

ImageFolder list_named_images(const fs::path& folder, Split split, const NamedImagesOptions& options) {
  const auto place = table_of(folder, split);
  if (!place)
    throw NotFoundError("{}: there are no pictures with a table of their classes for {} in it",
                        folder.string(), split == Split::train ? "training" : "testing");
  ImageFolder found = NamedImages(*place, options).read();
  found.name = detail::last_name(folder);
  return found;
}

}  // namespace kolo::models

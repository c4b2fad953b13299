#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/paths.h>
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

// The only table of a folder in which there are pictures.
std::optional<Place> table_in(const fs::path& folder) {
  const std::vector<fs::path> tables = detail::tables_in(folder);
  if (tables.size() != 1 || !has_pictures(folder)) return std::nullopt;
  return Place{.table = tables.front(), .pictures = folder};
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
std::optional<fs::path> picture_named(const fs::path& folder, const std::string& name) {
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

class NamedImages {
 public:
  NamedImages(const Place& place, const std::string& target, const std::optional<LabelKind>& kind)
      : folder_(place.pictures), target_(target), kind_(kind), file_(place.table) {}

  ImageFolder read() {
    find_columns();
    for (Fields fields; file_.next(fields);) take(fields);
    const bool has_bars = std::any_of(cells_.begin(), cells_.end(), [](const std::string& cell) {
      return cell.find('|') != std::string::npos;
    });
    is_split_ = kind_.value_or(has_bars ? LabelKind::several : LabelKind::one_class) == LabelKind::several;
    if (!is_split_) check_classes();
    if (found_.files.empty()) throw InvalidArgumentError("{}: there are no samples in it", file_.name());
    number_classes();
    found_.left_out = notes();
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
    if (!names_.empty()) file_.next(fields);
    if (file_.columns < 2)
      throw InvalidArgumentError("{}: one column; there must be one of pictures and one of classes",
                                 file_.name());
    label_ = label_column(first);
  }

  std::optional<std::size_t> column_of_pictures(const Fields& fields) const {
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (picture_named(folder_, unquoted(fields[i]))) return i;
    return std::nullopt;
  }

  std::size_t label_column(const std::vector<std::string>& first) const {
    const Fields columns(first.begin(), first.end());
    if (!target_.empty()) {
      if (const auto place = detail::place_of(target_, columns, !names_.empty())) return *place;
      throw InvalidArgumentError("{}: --target {}: there is no such column; there are {}", file_.name(),
                                 target_, fmt::join(first, ", "));
    }
    if (!names_.empty())
      if (const auto usual = detail::usual_label(columns, picture_)) return *usual;
    return *picture_ + 1 == file_.columns ? *picture_ - 1 : file_.columns - 1;
  }

  void take(const Fields& fields) {
    if (fields.size() != file_.columns)
      throw InvalidArgumentError("{}, line {}: {} columns; the first line has {}", file_.name(), file_.line(),
                                 fields.size(), file_.columns);
    const std::string name = unquoted(fields[*picture_]);
    const auto picture = picture_named(folder_, name);
    if (!picture)
      throw InvalidArgumentError("{}, line {}: there is no picture {:?} in {}", file_.name(), file_.line(),
                                 name, folder_.string());
    if (!taken_.insert(picture->lexically_normal()).second)
      throw InvalidArgumentError("{}, line {}: the picture {:?} has a line before this one; each has one",
                                 file_.name(), file_.line(), name);
    found_.files.push_back(*picture);
    cells_.push_back(detail::is_empty_cell(fields[label_]) ? "" : unquoted(fields[label_]));
    lines_.push_back(file_.line());
  }

  void check_classes() const {
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (cells_[i].empty())
        throw InvalidArgumentError("{}, line {}: the picture {:?} has no class", file_.name(), lines_[i],
                                   found_.files[i].filename().string());
  }

  std::vector<std::string> words_in(const std::string& cell) const {
    return is_split_ ? detail::parts_of(cell, '|') : std::vector{cell};
  }

  // Sorted; numbers by their size.
  void number_classes() {
    std::set<std::string> words;
    for (const std::string& cell : cells_)
      for (std::string& word : words_in(cell)) words.insert(std::move(word));
    found_.classes.assign(words.begin(), words.end());
    const bool are_numbers = std::all_of(
        words.begin(), words.end(), [](const std::string& word) { return parse_int64(word).has_value(); });
    if (are_numbers)
      std::stable_sort(found_.classes.begin(), found_.classes.end(),
                       [](const auto& a, const auto& b) { return *parse_int64(a) < *parse_int64(b); });
    std::map<std::string, std::int32_t> numbers;
    for (const std::string& word : found_.classes)
      numbers.emplace(word, static_cast<std::int32_t>(numbers.size()));
    if (is_split_) found_.several.emplace(cells_.size());
    for (std::size_t i = 0; i < cells_.size(); ++i)
      for (const std::string& word : words_in(cells_[i]))
        (is_split_ ? (*found_.several)[i] : found_.labels).push_back(numbers.at(word));
  }

  std::string column(std::size_t place) const {
    return detail::column_text(place, names_.empty() ? "" : names_[place]);
  }

  std::string notes() const {
    std::string text =
        fmt::format("pictures: column {} of {}, label{}: column {}", column(*picture_),
                    fs::path(file_.name()).filename().string(), is_split_ ? "s" : "", column(label_));
    const auto without = std::count(cells_.begin(), cells_.end(), "");
    if (without > 0) text += fmt::format(", {} pictures without a label", without);
    LeftOut left_out;
    const std::vector<fs::path> there = images_below(folder_, left_out);
    const std::string own = detail::kind_of_file(file_.name());
    if (fs::path(file_.name()).parent_path() == folder_ && --left_out[own] == 0) left_out.erase(own);
    const auto unnamed = std::count_if(there.begin(), there.end(), [&](const fs::path& one) {
      return !taken_.contains(one.lexically_normal());
    });
    if (unnamed > 0) left_out["pictures that it does not name"] += unnamed;
    for (std::size_t i = 0; i < file_.columns; ++i)
      if (i != *picture_ && i != label_) text += ", left out: column " + column(i);
    const std::string rest = left_out_text(left_out);
    return rest.empty() ? text : text + ", " + rest;
  }

  fs::path folder_;
  std::string target_;
  std::optional<LabelKind> kind_;  // that is asked for
  bool is_split_ = false;          // a cell holds several labels
  CsvFile file_;
  std::vector<std::string> names_;  // of the columns; empty: there are none
  std::optional<std::size_t> picture_;
  std::size_t label_ = 0;
  std::set<fs::path> taken_;
  std::vector<std::string> cells_;   // of labels, of each file
  std::vector<std::int64_t> lines_;  // of each file
  ImageFolder found_;
};

}  // namespace

bool is_named_images(const fs::path& folder) { return table_of(folder, Split::train).has_value(); }
bool has_named_images_test(const fs::path& folder) { return table_of(folder, Split::test).has_value(); }

ImageFolder list_named_images(const fs::path& folder, Split split, const std::string& target,
                              const std::optional<LabelKind>& label_kind) {
  const auto place = table_of(folder, split);
  if (!place)
    throw NotFoundError("{}: there are no pictures with a table of their classes for {} in it",
                        folder.string(), split == Split::train ? "training" : "testing");
  ImageFolder found = NamedImages(*place, target, label_kind).read();
  found.name = detail::last_name(folder);
  return found;
}

}  // namespace kolo::models

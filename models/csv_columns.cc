#include <kolo/models/csv_columns.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/alike_names.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {
namespace {

// Places of columns by their names, which are looked for as often as there are columns.
class NamePlaces {
 public:
  explicit NamePlaces(const Fields& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      names_.push_back(unquoted(fields[i]));
      places_[names_.back()].push_back(i);
      in_small_letters_.emplace(small(names_.back()), i);
    }
  }

  // The first one that is called so, or else so but for the letters' size.
  std::optional<std::size_t> find(const std::string& name) const {
    if (const auto same = places_.find(name); same != places_.end()) return same->second.front();
    const auto alike = in_small_letters_.find(small(name));
    if (name.empty() || alike == in_small_letters_.end()) return std::nullopt;
    return alike->second;
  }
  // The next column behind `place` that has the same name.
  std::optional<std::size_t> same_behind(std::size_t place) const {
    const std::vector<std::size_t>& places = places_.at(names_[place]);
    const auto behind = std::upper_bound(places.begin(), places.end(), place);
    return behind == places.end() ? std::nullopt : std::optional(*behind);
  }
  const std::string& name(std::size_t place) const { return names_[place]; }
  const std::vector<std::string>& all() const { return names_; }

 private:
  static std::string small(std::string name) {
    for (char& letter : name) letter = lower_case(letter);
    return name;
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::vector<std::size_t>> places_;
  std::unordered_map<std::string, std::size_t> in_small_letters_;
};

// 0,1,2,…: what pandas writes above an array's columns. Of two columns it may as well be a sample.
bool counts_columns(const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i] != std::to_string(i)) return false;
  return fields.size() > 2;
}

// Whether the numbers of a line with a label's name may be names, too: whole and different ones, as in
// 2019,2020,label. Beside y, which is also an answer, they count up, as in 0,1,2,y.
bool are_numbers_names(const Fields& fields, bool count_up) {
  std::set<std::int64_t> numbers;
  for (const std::string_view field : fields) {
    if (!may_be_number(field)) continue;
    const auto number = parse_int64(field);
    if (!number || *number < 0 || !numbers.insert(*number).second) return false;
  }
  return !count_up || numbers.empty() ||
         (*numbers.begin() <= 1 && *numbers.rbegin() - *numbers.begin() + 1 == std::ssize(numbers));
}

// Whether --target, or a training that knows its columns by name, tells that these are names.
bool are_known_names(const Fields& fields, const CsvOptions& options) {
  std::vector<std::string> targets = names_in(options.target);
  targets.push_back(options.target);
  for (const std::string& target : targets)
    if (!target.empty() && !number_in(target) && place_of(target, fields, true)) return true;
  if (options.known && options.known->is_named) {
    const NamePlaces names(fields);
    for (const TableColumn& feature : options.known->features)
      if (names.find(feature.name) && !number_in(feature.name)) return true;
  }
  return false;
}

bool are_words(const Fields& fields) {
  return std::none_of(fields.begin(), fields.end(),
                      [&](std::string_view field) { return may_be_number(field); });
}

bool are_names(const Fields& fields) {
  if (counts_columns(fields)) return true;
  if (const auto usual = usual_label(fields);
      usual && are_numbers_names(fields, is_same_name("y", fields[*usual])))
    return true;
  return are_words(fields);
}

// Of a first line of words: whether most of them are cells of their columns, too, the label's among them, as
// where the line is a row like all others. A column `Email` may hold `Email` or `No`, but `label` no `label`.
// A line with the same words throughout is one of names that another file has brought.
bool stands_among_rows(CsvFile& file, const Fields& first, const CsvOptions& options) {
  constexpr int kMostRead = 1000;
  std::vector<bool> is_cell(first.size());
  Fields fields;
  for (int i = 0; i < kMostRead && file.next(fields); ++i) {
    if (fields == first || fields.size() != first.size()) continue;
    for (std::size_t k = 0; k < fields.size(); ++k)
      if (!first[k].empty() && fields[k] == first[k]) is_cell[k] = true;
  }
  file.rewind();
  Fields again;
  file.next(again);
  // Options that name a column have shown that these are names: here they count.
  const auto numbered = [&](const std::string& one) { return place_of(one, first, /*has_names=*/false); };
  std::set<std::size_t> asked;  // all but those that are left out
  for (std::size_t i = 0; i < first.size(); ++i) asked.insert(i);
  for (const std::string& one : options.ignore)
    if (const auto place = numbered(one)) asked.erase(*place);
  std::set<std::size_t> labels;
  for (const std::string& one : names_in(options.target))
    if (const auto place = numbered(one)) labels.insert(*place);
  if (labels.empty()) labels.insert(usual_label(first).value_or(asked.empty() ? 0 : *asked.rbegin()));
  const auto is_found = [&](std::size_t place) { return bool{is_cell[place]}; };
  return std::all_of(labels.begin(), labels.end(), is_found) &&
         2 * std::count_if(asked.begin(), asked.end(), is_found) > std::ssize(asked);
}

// Of a later table's first line of words: whether most of them are words of the training's columns, as where
// few rows have no names above them.
bool is_known_row(const Fields& fields, const TableSchema& schema) {
  std::vector<const TableColumn*> columns;
  for (const TableColumn& feature : schema.features) columns.push_back(&feature);
  const bool is_all = fields.size() == schema.columns;
  if (is_all)
    for (const TableColumn& label : schema.labels) columns.push_back(&label);
  else if (fields.size() != columns.size()) return false;
  std::ptrdiff_t known = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto& words = columns[i]->words;
    const std::string word = unquoted(fields[is_all ? columns[i]->place : i]);
    known += std::find(words.begin(), words.end(), word) != words.end() ? 1 : 0;
  }
  return 2 * known > std::ssize(columns);
}

// As options take them.
std::string names_of(const Fields& fields) {
  std::vector<std::string> names;
  for (const std::string_view field : fields) {
    const bool has_comma = field.find(',') != std::string_view::npos;
    names.push_back(has_comma ? fmt::format("\"{}\"", unquoted(field)) : unquoted(field));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string columns_there(const CsvFile& file, const Fields& fields) {
  return file.has_names ? "there are " + names_of(fields)
                        : fmt::format("the columns are 1 to {}", fields.size());
}

[[noreturn]] void throw_same_names(const CsvFile& file, const Fields& fields, std::size_t first,
                                   std::size_t second, const std::string& right) {
  const std::string name = unquoted(fields[first]), other = unquoted(fields[second]);
  throw InvalidArgumentError("{}: columns {} and {} {}; {}", file.name(), first + 1, second + 1,
                             name.empty()    ? "have no name"
                             : name == other ? fmt::format("are both called {:?}", name)
                                             : fmt::format("are called {:?} and {:?}", name, other),
                             right);
}

std::size_t required_place(const CsvFile& file, const Fields& fields, const std::string& name,
                           const char* option) {
  const auto place = place_of(name, fields, file.has_names);
  if (place) {
    const auto second = NamePlaces(fields).same_behind(*place);
    if (second && file.has_names && is_same_name(unquoted(fields[*place]), name))
      throw_same_names(file, fields, *place, *second,
                       fmt::format("rename one, or give {} its column's number", option));
    return *place;
  }
  throw InvalidArgumentError("{}: {} {}: there is no such column; {}", file.name(), option, name,
                             columns_there(file, fields));
}

// Later tables are read by their names. found_label: the label that nobody has named, whose name in other
// letters would give the answer away.
void check_names(const CsvFile& file, const Fields& fields, const std::set<std::size_t>& left_out,
                 std::size_t found_label) {
  std::map<std::string, std::size_t> places;
  const auto refuse = [&](std::size_t i, std::size_t j) {
    throw_same_names(file, fields, i, j,
                     fmt::format("rename one, or leave one out by its number, as --ignore {}", j + 1));
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (left_out.contains(i)) continue;
    const auto [first, is_new] = places.emplace(unquoted(fields[i]), i);
    if (!is_new) refuse(first->second, i);
    if (found_label < fields.size() && i != found_label &&
        is_same_name(unquoted(fields[i]), unquoted(fields[found_label])))
      refuse(std::min(i, found_label), std::max(i, found_label));
  }
}

// Of a column: its number where options or the shell would take the name for something else.
std::string name_for_options(std::size_t place, const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::string_view(" ,\"'`$&|;<>()[]{}*?!#~\\\t").find(c) == std::string_view::npos;
  });
  return is_plain && !name.empty() && !name.starts_with('-') ? name : std::to_string(place + 1);
}

// "" where the label's name leaves no doubt. Labels in front of all other columns are usual, but not as y.
std::string warning_of_label(const Fields& fields, std::size_t label, const std::set<std::size_t>& left_out) {
  const std::size_t last = fields.size() - 1;
  std::size_t first = 0;
  while (left_out.contains(first)) ++first;
  if (label == last || left_out.contains(last) || (label == first && !is_same_name("y", fields[label])))
    return "";
  const std::string name = unquoted(fields[last]);
  return fmt::format(
      "the label is column {} by its name, and not the last one, column {}, which --target {} takes",
      column_text(label, unquoted(fields[label])), column_text(last, name), name_for_options(last, name));
}

void find_schema(CsvColumns& found, const CsvFile& file, const Fields& fields, const CsvOptions& options) {
  std::set<std::size_t> left_out;
  TableSchema& schema = found.schema;
  const auto name_of = [&](std::size_t i) { return file.has_names ? unquoted(fields[i]) : ""; };
  if (counts_columns(fields))
    found.notes.push_back(fmt::format("names 0 to {} in the first line", fields.size() - 1));
  if (file.has_names && fields[0].empty()) {
    left_out.insert(0);
    schema.ignored.emplace_back();
    found.notes.emplace_back("left out: column 1, which has no name");
  }
  for (const std::string& name : options.ignore) {
    const std::size_t place = required_place(file, fields, name, "--ignore");
    if (!left_out.insert(place).second) continue;
    schema.ignored.push_back(name_of(place));
    found.notes.push_back("left out: column " + column_text(place, name_of(place)));
  }
  const auto usual = file.has_names ? usual_label(fields) : std::nullopt;
  std::vector<std::size_t> labels = {usual.value_or(fields.size() - 1)};
  if (!options.target.empty()) labels = target_places(file, fields, options.target);
  for (const std::size_t label : labels)
    if (left_out.contains(label))
      throw InvalidArgumentError(
          "{}: column {} is the label, and --ignore leaves it out; --target names another column",
          file.name(), column_text(label, name_of(label)));
  if (options.target.empty())
    if (std::string warning = warning_of_label(fields, labels.front(), left_out); !warning.empty())
      found.warnings.push_back(std::move(warning));
  if (fields.size() < left_out.size() + labels.size() + 1)
    throw InvalidArgumentError(
        "{}, line {}: {}; there must be a label and at least one beside it", file.name(), file.line(),
        fields.size() == 1 ? "one column"
        : left_out.empty()
            ? fmt::format("--target takes all {} columns", labels.size())
            : fmt::format("of {} columns {} left out", fields.size(),
                          left_out.size() == 1 ? "one is" : fmt::format("{} are", left_out.size())));
  if (file.has_names)
    check_names(file, fields, left_out, options.target.empty() ? labels.front() : fields.size());
  schema.is_named = file.has_names;
  schema.missing = options.missing;
  schema.columns = fields.size();
  schema.labels.clear();
  for (const std::size_t label : labels) schema.labels.push_back({.name = name_of(label), .place = label});
  left_out.insert(labels.begin(), labels.end());
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (!left_out.contains(i)) schema.features.push_back({.name = name_of(i), .place = i});
}

// Where a later table has a column of the training's. Of two with its name, of which the training left one
// out, it is the one at the training's place.
std::optional<std::size_t> place_of_known(const CsvFile& file, const Fields& fields, const NamePlaces& names,
                                          const TableSchema& schema, const TableColumn& column) {
  const auto place = names.find(column.name);
  if (!place) return place;
  const auto second = names.same_behind(*place);
  if (!second) return place;
  const auto& ignored = schema.ignored;
  if (std::find(ignored.begin(), ignored.end(), column.name) != ignored.end() &&
      column.place < fields.size() && names.name(column.place) == column.name)
    return column.place;
  throw_same_names(file, fields, *place, *second, "rename one, or take one away");
}

// Tells the file where the schema's columns stand by their names.
void find_by_name(CsvColumns& found, CsvFile& file, const Fields& fields, const CsvOptions& options) {
  const TableSchema& schema = found.schema;
  const NamePlaces names(fields);
  const std::set<std::string> ignored(schema.ignored.begin(), schema.ignored.end());
  std::set<std::size_t> known;
  for (const TableColumn& feature : schema.features) {
    const auto place = place_of_known(file, fields, names, schema, feature);
    if (!place)
      throw InvalidArgumentError(
          "{}: there is no column {:?}, {}; there are {}{}", file.name(), feature.name,
          options.known ? "of which the model has learnt" : "which the first of these files has",
          names_of(fields), alike_text(feature.name, names.all()));
    file.places.push_back(*place);
    known.insert(*place);
  }
  for (const TableColumn& label : schema.labels) {
    const auto place = place_of_known(file, fields, names, schema, label);
    if (place) file.labels.push_back(*place), known.insert(*place);
    else if (options.labelled)
      throw InvalidArgumentError(
          "{}: there is no column {:?}, which holds {}; there are {}. --predict takes a table without it",
          file.name(), label.name, schema.labels.size() == 1 ? "the labels" : "one of the labels",
          names_of(fields));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = names.name(i);
    if (!known.contains(i) && !ignored.contains(name))
      found.notes.push_back(
          fmt::format("left out: column {}, of which the model has not learnt", column_text(i, name)));
  }
}

// Of a later table than one without names.
std::string warning_of_unnamed(const CsvFile& file, const Fields& fields) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < std::min(fields.size(), kMostNamed); ++i)
    columns.push_back(column_text(i, unquoted(fields[i])));
  if (fields.size() > kMostNamed) columns.emplace_back("…");
  return fmt::format(
      "{}: the training's table had no names in its first line, so the columns of this one are taken by "
      "their "
      "places: {}; in another order every answer is wrong",
      file.name(), fmt::join(columns, ", "));
}

// By their places, where the schema or the file has no names. A file may lack the labels where nobody asks
// for them, or have pandas' index in front.
void find_by_place(CsvColumns& found, CsvFile& file, const Fields& fields, const CsvOptions& options) {
  const TableSchema& schema = found.schema;
  const std::size_t features = schema.features.size(), index = file.has_names && fields[0].empty() ? 1 : 0;
  const bool is_all = fields.size() == schema.columns || fields.size() == schema.columns + index;
  const bool lacks_label = !options.labelled && fields.size() - index == features;
  if (!is_all && !lacks_label)
    throw InvalidArgumentError("{}, line {}: {}; the model takes {}, and beside them there may be a label",
                               file.name(), file.line(), count_of(fields.size() - index, "column"), features);
  const std::size_t shift = fields.size() == schema.columns ? 0 : index;
  for (const TableColumn& label : schema.labels)
    if (is_all) file.labels.push_back(label.place + shift);
  const std::vector<std::size_t> as_trained = file.labels;
  // Without a schema of its own, a model of plain numbers: the label has its usual name.
  if (const auto usual = usual_label(fields);
      is_all && options.known && file.has_names && usual && features + 1 == schema.columns)
    file.labels = {*usual};
  if (lacks_label || file.labels != as_trained) {
    for (std::size_t i = lacks_label ? index : shift; file.places.size() < features; ++i)
      if (lacks_label || i != file.labels.front()) file.places.push_back(i);
  } else {
    for (const TableColumn& feature : schema.features) file.places.push_back(feature.place + shift);
  }
  if (file.has_names && options.known && !schema.is_named && schema.is_of_table)
    found.warnings.push_back(warning_of_unnamed(file, fields));
}

}  // namespace

std::vector<std::size_t> target_places(const CsvFile& file, const Fields& names, const std::string& target) {
  if (const auto whole = place_of(target, names, file.has_names)) return {*whole};
  std::vector<std::size_t> places;
  std::vector<std::string> parts = names_in(target);
  if (parts.empty()) parts = {target};
  for (const std::string& part : parts) {
    places.push_back(required_place(file, names, part, "--target"));
    if (std::count(places.begin(), places.end(), places.back()) > 1)
      throw InvalidArgumentError("{}: --target {} names column {} twice; it must name each once", file.name(),
                                 target, places.back() + 1);
  }
  return places;
}

std::optional<std::size_t> place_of(std::string_view wanted, const Fields& names, bool has_names) {
  for (std::size_t i = 0; has_names && i < names.size(); ++i)
    if (unquoted(names[i]) == wanted) return i;
  for (std::size_t i = 0; has_names && i < names.size(); ++i)
    if (is_same_name(unquoted(names[i]), wanted)) return i;
  const auto number = parse_int64(wanted);
  if (number && *number >= 1 && *number <= static_cast<std::int64_t>(names.size()))
    return static_cast<std::size_t>(*number - 1);
  return std::nullopt;
}

std::optional<std::size_t> usual_label(const Fields& names, std::optional<std::size_t> but) {
  for (const std::string_view usual : {"label", "class", "target", "species", "y"})
    for (std::size_t i = 0; i < names.size(); ++i)
      if (i != but && is_same_name(usual, names[i])) return i;
  return std::nullopt;
}

std::string ignore_text(std::size_t place, const std::string& name) {
  return fmt::format("--ignore {} leaves it out", name_for_options(place, name));
}

std::string warning_of_row_numbers(const TableColumn& column, bool is_label) {
  const std::string text = column_text(column.place, column.name);
  if (!is_label)
    return fmt::format("column {} rises by 1 from row to row; if it only numbers them, {}", text,
                       ignore_text(column.place, column.name));
  return fmt::format(
      "the label, column {}, rises by 1 from row to row; if it only numbers them, --target names another "
      "column, and then {}",
      text, ignore_text(column.place, column.name));
}

std::string column_text(std::size_t place, const std::string& name) {
  return name.empty() ? std::to_string(place + 1) : fmt::format("{} \"{}\"", place + 1, name);
}

CsvColumns find_columns(std::vector<CsvFile>& files, const CsvOptions& options) {
  CsvColumns found;
  if (options.known) found.schema = *options.known;
  for (CsvFile& file : files) {
    Fields fields;
    if (!file.next(fields)) throw InvalidArgumentError("{}: there are no samples in it", file.name());
    file.columns = fields.size();
    file.has_names = are_known_names(fields, options) || are_names(fields);
    if (file.has_names && are_words(fields) && !are_known_names(fields, options)) {
      const bool is_known = options.known && is_known_row(fields, *options.known);
      file.has_names = !is_known && !stands_among_rows(file, fields, options);
      if (!file.has_names)
        found.notes.push_back(
            is_known ? "the first line is a row, as its words are those of the training's columns"
                     : "the first line is read as a row, because most of its words also occur below it");
    }
    if (!options.known && &file == &files.front()) find_schema(found, file, fields, options);
    if (found.schema.is_named && file.has_names) find_by_name(found, file, fields, options);
    else find_by_place(found, file, fields, options);
    if (!options.labelled) file.labels.clear();
    if (!file.has_names) file.rewind();
  }
  return found;
}

}  // namespace kolo::models::detail

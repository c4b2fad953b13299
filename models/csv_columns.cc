#include <kolo/models/csv_columns.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::models::detail {
namespace {

// 0,1,2,…: what pandas writes above an array's columns. Of two columns it may as well be a sample.
bool counts_columns(const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i] != std::to_string(i)) return false;
  return fields.size() > 2;
}

bool has_names(const Fields& fields, bool decimal_comma, const CsvOptions& options) {
  if (usual_label(fields) || counts_columns(fields)) return true;
  if (!options.target.empty() && !number_in(options.target) && place_of(options.target, fields, true))
    return true;
  if (options.known && options.known->is_named)
    for (const TableColumn& feature : options.known->features)
      if (place_of(feature.name, fields, true) && !number_in(feature.name)) return true;
  return std::none_of(fields.begin(), fields.end(),
                      [&](std::string_view field) { return number_in(field, decimal_comma).has_value(); });
}

std::string columns_there(const CsvFile& file, const Fields& fields) {
  return file.has_names ? fmt::format("there are {}", fmt::join(fields, ", "))
                        : fmt::format("the columns are 1 to {}", fields.size());
}

std::size_t required_place(const CsvFile& file, const Fields& fields, const std::string& name,
                           const char* option) {
  const auto place = place_of(name, fields, file.has_names);
  if (place) return *place;
  throw InvalidArgumentError("{}: {} {}: there is no such column; {}", file.name(), option, name,
                             columns_there(file, fields));
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
  std::size_t label = usual_label(fields).value_or(fields.size() - 1);
  if (!options.target.empty()) label = required_place(file, fields, options.target, "--target");
  if (left_out.contains(label))
    throw InvalidArgumentError(
        "{}: column {} is the label, and --ignore leaves it out; --target names another column", file.name(),
        column_text(label, name_of(label)));
  if (fields.size() < left_out.size() + 2)
    throw InvalidArgumentError("{}, line {}: one column; there must be a label and at least one beside it",
                               file.name(), file.line());
  schema.is_named = file.has_names;
  schema.missing = options.missing;
  schema.columns = fields.size();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    TableColumn column{.name = name_of(i), .place = i};
    if (i == label) schema.label = std::move(column);
    else if (!left_out.contains(i)) schema.features.push_back(std::move(column));
  }
}

// Tells the file where the schema's columns stand by their names.
void find_by_name(CsvColumns& found, CsvFile& file, const Fields& fields, const CsvOptions& options) {
  const TableSchema& schema = found.schema;
  std::set<std::size_t> known;
  for (const TableColumn& feature : schema.features) {
    const auto place = place_of(feature.name, fields, true);
    if (!place)
      throw InvalidArgumentError("{}: there is no column {:?}, of which the model has learnt; there are {}",
                                 file.name(), feature.name, fmt::join(fields, ", "));
    file.places.push_back(*place);
    known.insert(*place);
  }
  file.label = place_of(schema.label.name, fields, true);
  if (file.label) known.insert(*file.label);
  else if (options.labelled)
    throw InvalidArgumentError("{}: there is no column {:?}, which holds the labels; there are {}",
                               file.name(), schema.label.name, fmt::join(fields, ", "));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = unquoted(fields[i]);
    const bool was_ignored =
        std::find(schema.ignored.begin(), schema.ignored.end(), name) != schema.ignored.end();
    if (!known.contains(i) && !was_ignored)
      found.notes.push_back(
          fmt::format("left out: column {}, of which the model has not learnt", column_text(i, name)));
  }
}

// By their places, where the schema or the file has no names. A file may lack the label where nobody asks
// for it, or have pandas' index in front.
void find_by_place(CsvColumns& found, CsvFile& file, const Fields& fields, const CsvOptions& options) {
  const TableSchema& schema = found.schema;
  const std::size_t features = schema.features.size(), index = file.has_names && fields[0].empty() ? 1 : 0;
  const bool is_all = fields.size() == schema.columns || fields.size() == schema.columns + index;
  const bool lacks_label = !options.labelled && fields.size() - index == features;
  if (!is_all && !lacks_label)
    throw InvalidArgumentError(
        "{}, line {}: {} columns; the model takes {}, and beside them there may be a label", file.name(),
        file.line(), fields.size() - index, features);
  const std::size_t shift = fields.size() == schema.columns ? 0 : index;
  if (is_all) file.label = schema.label.place + shift;
  // Without a schema of its own, a model of plain numbers: the label has its usual name.
  if (const auto usual = usual_label(fields);
      is_all && options.known && file.has_names && usual && features + 1 == schema.columns)
    file.label = *usual;
  if (lacks_label || (file.label && *file.label != schema.label.place + shift)) {
    for (std::size_t i = lacks_label ? index : shift; file.places.size() < features; ++i)
      if (lacks_label || i != *file.label) file.places.push_back(i);
  } else {
    for (const TableColumn& feature : schema.features) file.places.push_back(feature.place + shift);
  }
  if (schema.is_named)
    found.notes.push_back(
        fmt::format("columns of {} by their places, because its first line has no names", file.name()));
}

}  // namespace

std::optional<std::size_t> place_of(std::string_view wanted, const Fields& names, bool has_names) {
  for (std::size_t i = 0; has_names && i < names.size(); ++i)
    if (unquoted(names[i]) == wanted) return i;
  for (std::size_t i = 0; has_names && i < names.size(); ++i)
    if (is_same_name(names[i], wanted)) return i;
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
    file.has_names = has_names(fields, file.separator() != ',', options);
    if (!options.known && &file == &files.front()) find_schema(found, file, fields, options);
    if (found.schema.is_named && file.has_names) find_by_name(found, file, fields, options);
    else find_by_place(found, file, fields, options);
    if (!options.labelled) file.label.reset();
    if (!file.has_names) file.rewind();
  }
  return found;
}

}  // namespace kolo::models::detail

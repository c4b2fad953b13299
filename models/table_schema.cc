#include <kolo/models/data.h>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>

namespace kolo::models {
namespace {

using Json = nlohmann::ordered_json;

constexpr MissingCells kAllMissing[] = {MissingCells::refuse, MissingCells::mean, MissingCells::zero,
                                        MissingCells::drop};

Json column_json(const TableColumn& column) {
  Json json = {{"name", column.name}, {"place", column.place}};
  if (column.words.empty()) json["mean"] = column.mean;
  else json["words"] = column.words;
  if (column.has_decimal_commas) json["decimal_commas"] = true;
  if (column.has_thousands_points) json["thousands_points"] = true;
  if (column.has_thousands_commas) json["thousands_commas"] = true;
  if (column.has_decimal_points) json["decimal_points"] = true;
  return json;
}

TableColumn column_from(const Json& json) {
  TableColumn column{.name = json.at("name").get<std::string>(),
                     .place = json.at("place").get<std::size_t>()};
  if (json.contains("words")) column.words = json["words"].get<std::vector<std::string>>();
  else column.mean = json.at("mean").get<float>();
  column.has_decimal_commas = json.value("decimal_commas", false);
  column.has_thousands_points = json.value("thousands_points", false);
  column.has_thousands_commas = json.value("thousands_commas", false);
  column.has_decimal_points = json.value("decimal_points", false);
  return column;
}

}  // namespace

const char* name(MissingCells missing) {
  switch (missing) {
    case MissingCells::refuse: return "refuse";
    case MissingCells::mean: return "mean";
    case MissingCells::zero: return "zero";
    case MissingCells::drop: return "drop";
  }
  return "";
}

MissingCells missing_cells_named(std::string_view wanted) {
  for (const MissingCells one : kAllMissing)
    if (wanted == name(one)) return one;
  throw InvalidArgumentError("{:?} says nothing of empty cells; it must be refuse, mean, zero or drop",
                             wanted);
}

std::int64_t TableSchema::elements() const {
  std::int64_t sum = 0;
  for (const TableColumn& column : features) sum += column.elements();
  return sum;
}

std::int64_t TableSchema::outputs() const {
  const std::size_t words = labels.front().words.size();
  if (words > 0 || label_kind == LabelKind::one_class) return static_cast<std::int64_t>(words);
  return static_cast<std::int64_t>(labels.size());
}

std::vector<std::string> TableSchema::output_names() const {
  if (!labels.front().words.empty() || label_kind == LabelKind::one_class) return labels.front().words;
  std::vector<std::string> names;
  for (const TableColumn& column : labels) {
    if (column.name.empty()) return {};
    names.push_back(column.name);
  }
  return names;
}

std::string to_json(const TableSchema& schema) {
  Json features = Json::array();
  for (const TableColumn& column : schema.features) features.push_back(column_json(column));
  const bool is_one = schema.labels.size() == 1;  // as earlier versions read and wrote it
  Json labels = Json::array();
  for (const TableColumn& column : schema.labels) labels.push_back(column_json(column));
  return json_text(Json{{"features", features},
                        {is_one ? "label" : "labels", is_one ? labels.front() : labels},
                        {kRegressionKey, schema.label_kind == LabelKind::numbers},
                        {kSeveralLabelsKey, schema.label_kind == LabelKind::several},
                        {"ignored", schema.ignored},
                        {"columns", schema.columns},
                        {"named", schema.is_named},
                        {"missing", name(schema.missing)},
                        {"decimal_commas", schema.has_decimal_commas}});
}

TableSchema table_schema_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    TableSchema schema;
    for (const Json& column : json.at("features")) schema.features.push_back(column_from(column));
    schema.labels.clear();
    if (json.contains("label")) schema.labels.push_back(column_from(json["label"]));
    else
      for (const Json& column : json.at("labels")) schema.labels.push_back(column_from(column));
    if (schema.labels.empty()) throw InvalidArgumentError("there is no label");
    schema.label_kind =
        label_kind_of(json.value(kRegressionKey, false), json.value(kSeveralLabelsKey, false));
    schema.ignored = json.at("ignored").get<std::vector<std::string>>();
    schema.columns = json.at("columns").get<std::size_t>();
    schema.is_named = json.at("named").get<bool>();
    schema.missing = missing_cells_named(json.at("missing").get<std::string>());
    schema.has_decimal_commas = json.value("decimal_commas", false);
    return schema;
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("the columns of a table are not as kolo wrote them: {}", error.what());
  } catch (const InvalidArgumentError& error) {
    throw DataLossError("the columns of a table are not as kolo wrote them: {}", error.what());
  }
}

TableSchema plain_table(std::int64_t elements) {
  TableSchema schema{.is_of_table = false};
  for (std::int64_t i = 0; i < elements; ++i)
    schema.features.push_back({.place = static_cast<std::size_t>(i)});
  schema.labels.front().place = static_cast<std::size_t>(elements);
  schema.columns = schema.labels.front().place + 1;
  return schema;
}

}  // namespace kolo::models

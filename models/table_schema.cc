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
  return json;
}

TableColumn column_from(const Json& json) {
  TableColumn column{.name = json.at("name").get<std::string>(),
                     .place = json.at("place").get<std::size_t>()};
  if (json.contains("words")) column.words = json["words"].get<std::vector<std::string>>();
  else column.mean = json.at("mean").get<float>();
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

std::string to_json(const TableSchema& schema) {
  Json features = Json::array();
  for (const TableColumn& column : schema.features) features.push_back(column_json(column));
  return json_text(Json{{"features", features},
                        {"label", column_json(schema.label)},
                        {"regression", schema.regression},
                        {"ignored", schema.ignored},
                        {"columns", schema.columns},
                        {"named", schema.is_named},
                        {"missing", name(schema.missing)}});
}

TableSchema table_schema_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    TableSchema schema;
    for (const Json& column : json.at("features")) schema.features.push_back(column_from(column));
    schema.label = column_from(json.at("label"));
    schema.regression = json.value("regression", false);
    schema.ignored = json.at("ignored").get<std::vector<std::string>>();
    schema.columns = json.at("columns").get<std::size_t>();
    schema.is_named = json.at("named").get<bool>();
    schema.missing = missing_cells_named(json.at("missing").get<std::string>());
    return schema;
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("the columns of a table are not as kolo wrote them: {}", error.what());
  } catch (const InvalidArgumentError& error) {
    throw DataLossError("the columns of a table are not as kolo wrote them: {}", error.what());
  }
}

TableSchema plain_table(std::int64_t elements) {
  TableSchema schema;
  for (std::int64_t i = 0; i < elements; ++i)
    schema.features.push_back({.place = static_cast<std::size_t>(i)});
  schema.label.place = static_cast<std::size_t>(elements);
  schema.columns = schema.label.place + 1;
  return schema;
}

}  // namespace kolo::models

// How the columns of a table are taken.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/models/table_schema.h>

namespace kolo::models {

/// How a table is read: what the user said, and what an earlier training found.
struct CsvOptions {
  std::string target = {};               // the label's column, by its name or its number from 1 on; "": found
  std::vector<std::string> ignore = {};  // columns that are left out, the same way
  MissingCells missing = MissingCells::refuse;
  // Whether the label is a number to be found, and not a class; none: where one is no whole number.
  std::optional<bool> regression = {};
  std::shared_ptr<const TableSchema> known = nullptr;  // of another table, by which this one is read
  bool labelled = true;  // false, with `known`: labels are not looked at, and their column may be absent
};

}  // namespace kolo::models

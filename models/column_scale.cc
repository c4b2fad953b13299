#include <kolo/models/column_scale.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <kolo/core/base/count_of.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models::detail {
namespace {

// A column's numbers are spread over its range: the largest of a few may well be small.
constexpr std::int64_t kTellingRows = 20;

void add_row(const TableSchema& table, const float* row, std::vector<float>& largest) {
  for (std::size_t i = 0; i < table.features.size(); ++i) {
    const TableColumn& column = table.features[i];
    if (column.words.empty()) largest[i] = std::max(largest[i], std::abs(*row));
    row += column.elements();
  }
}

}  // namespace

std::vector<float> largest_by_column(const TableSchema& table, const Tensor& rows) {
  std::vector<float> largest(table.features.size());
  for (std::int64_t i = 0; i < rows.shape().dim(0); ++i)
    add_row(table, rows.data<float>() + i * table.elements(), largest);
  return largest;
}

std::vector<float> largest_by_column(const TableSchema& table, const SampleSet& samples) {
  return largest_by_column(table, samples, 0, samples.size());
}

std::vector<float> largest_by_column(const TableSchema& table, const SampleSet& samples, std::int64_t begin,
                                     std::int64_t end) {
  const SampleKind& kind = samples.kind();
  const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  std::vector<float> largest(table.features.size());
  for (std::int64_t i = begin; i < end; ++i) {
    samples.read(i, nullptr, one, 0);
    add_row(table, one.samples.data<float>(), largest);
  }
  return largest;
}

std::string column_scale_warning(const std::string& name, const TableSchema& table,
                                 const std::vector<float>& given, std::int64_t rows,
                                 const std::vector<float>& trained) {
  constexpr std::size_t kMostNamed = 8;
  if (trained.size() != table.features.size()) return "";
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (given[i] < trained[i] && rows < kTellingRows) continue;
    const bool is_new = trained[i] == 0 && given[i] > 0 && table.features[i].words.empty();
    if (!is_new && scale_warning(name, given[i], trained[i]).empty()) continue;
    const TableColumn& column = table.features[i];
    columns.push_back(fmt::format("up to {:g} in column {} ({:g} in the training)", given[i],
                                  column_text(column.place, column.name), trained[i]));
  }
  if (columns.empty()) return "";
  const std::size_t more = columns.size() - std::min(columns.size(), kMostNamed);
  columns.resize(columns.size() - more);
  return fmt::format(
      "{}: numbers are {}{}; each column must be in the unit that it had in the training", name,
      fmt::join(columns, ", "),
      more == 0 ? ""
                : fmt::format(", and so in {} more", count_of(static_cast<std::int64_t>(more), "column")));
}

}  // namespace kolo::models::detail

#include <kolo/models/column_scale.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models::detail {
namespace {

// A column's numbers are spread over its range: the largest of a few may well be small.
constexpr std::int64_t kTellingRows = 20;

// Row by row; of some rows all over the table the numbers of each column are kept.
class ColumnReader {
 public:
  ColumnReader(const TableSchema& table, std::int64_t rows) : table_(table), rows_(rows) {
    constexpr std::int64_t kMostRows = 4096, kMostNumbers = std::int64_t{1} << 22;
    const auto columns = std::max<std::int64_t>(1, std::ssize(table.features));
    kept_ = std::min(rows, std::clamp<std::int64_t>(kMostNumbers / columns, 64, kMostRows));
    sizes_.largest.resize(table.features.size());
    numbers_.resize(table.features.size());
  }

  void add(std::int64_t row, const float* cells) {
    const bool is_kept = taken_ < kept_ && row == taken_ * rows_ / kept_;
    if (is_kept) ++taken_;
    for (std::size_t i = 0; i < table_.features.size(); ++i) {
      const TableColumn& column = table_.features[i];
      const float size = column.words.empty() ? std::abs(*cells) : 0;
      sizes_.largest[i] = std::max(sizes_.largest[i], size);
      if (is_kept && size > 0) numbers_[i].push_back(size);
      cells += column.elements();
    }
  }

  ColumnSizes finish() {
    for (std::vector<float>& numbers : numbers_) {
      const auto middle = numbers.begin() + std::ssize(numbers) / 2;
      std::nth_element(numbers.begin(), middle, numbers.end());
      sizes_.typical.push_back(numbers.empty() ? 0 : *middle);
      sizes_.filled.push_back(taken_ == 0 ? 0
                                          : static_cast<float>(numbers.size()) / static_cast<float>(taken_));
    }
    return std::move(sizes_);
  }

 private:
  const TableSchema& table_;
  std::int64_t rows_, kept_ = 0, taken_ = 0;
  ColumnSizes sizes_;
  std::vector<std::vector<float>> numbers_;
};

// Whether a column's numbers are of another unit, where most rows have one.
bool is_of_another_unit(const ColumnSizes& given, const ColumnSizes& trained, std::size_t i,
                        std::int64_t rows) {
  constexpr float kMost = 0.5, kAlmostAll = 0.9;
  const bool is_known = trained.typical.size() == trained.largest.size();
  if (given.largest[i] == 0 && is_known) return rows >= kTellingRows && trained.filled[i] >= kAlmostAll;
  if (given.filled[i] < kMost || (is_known && trained.largest[i] > 0 && trained.filled[i] < kMost))
    return false;
  if (trained.largest[i] == 0) return given.largest[i] > 0;
  if (given.largest[i] < trained.largest[i] && rows < kTellingRows) return false;
  const auto differs = [](float one, float other) { return !scale_warning("", one, other).empty(); };
  return differs(given.largest[i], trained.largest[i]) &&
         (!is_known || differs(given.typical[i], trained.typical[i]));
}

}  // namespace

ColumnSizes sizes_of_columns(const TableSchema& table, const Tensor& rows) {
  ColumnReader reader(table, rows.shape().dim(0));
  for (std::int64_t i = 0; i < rows.shape().dim(0); ++i)
    reader.add(i, rows.data<float>() + i * table.elements());
  return reader.finish();
}

ColumnSizes sizes_of_columns(const TableSchema& table, const SampleSet& samples) {
  return sizes_of_columns(table, samples, 0, samples.size());
}

ColumnSizes sizes_of_columns(const TableSchema& table, const SampleSet& samples, std::int64_t begin,
                             std::int64_t end) {
  const SampleKind& kind = samples.kind();
  const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  ColumnReader reader(table, end - begin);
  for (std::int64_t i = begin; i < end; ++i) {
    samples.read(i, nullptr, one, 0);
    reader.add(i - begin, one.samples.data<float>());
  }
  return reader.finish();
}

ColumnSizes joined(ColumnSizes a, const ColumnSizes& b) {
  for (auto which : {&ColumnSizes::largest, &ColumnSizes::typical, &ColumnSizes::filled})
    for (std::size_t i = 0; i < (a.*which).size() && (b.*which).size() == (a.*which).size(); ++i)
      (a.*which)[i] = std::max((a.*which)[i], (b.*which)[i]);
  return a;
}

std::string column_scale_warning(const std::string& name, const TableSchema& table, const ColumnSizes& given,
                                 std::int64_t rows, const ColumnSizes& trained) {
  constexpr std::size_t kMostNamed = 8;
  if (trained.largest.size() != table.features.size()) return "";
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < table.features.size(); ++i) {
    const TableColumn& column = table.features[i];
    if (column.words.empty() && is_of_another_unit(given, trained, i, rows))
      columns.push_back(fmt::format("up to {:g} in column {} ({:g} in the training)", given.largest[i],
                                    column_text(column.place, column.name), trained.largest[i]));
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

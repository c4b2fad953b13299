#include <kolo/models/column_scale.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/text.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models::detail {
namespace {

// A column's numbers are spread over its range: the largest of a few may well be small.
constexpr std::int64_t kTellingRows = 20;

// The number behind this share of them, which are put in another order; 0 of none.
float quantile(std::vector<float>& numbers, double share) {
  if (numbers.empty()) return 0;
  const auto place =
      numbers.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), place, numbers.end());
  return *place;
}

// The least or the greatest of these numbers, if several are it and all others lie closer together than
// beside it.
ColumnSizes::Alone number_alone(const std::vector<float>& numbers) {
  constexpr std::int64_t kLeastCount = 3, kOneOf = 50;
  const std::int64_t all = std::ssize(numbers);
  if (all < kTellingRows) return {};
  const auto [least, greatest] = std::minmax_element(numbers.begin(), numbers.end());
  for (const float number : {*least, *greatest}) {
    const std::int64_t count = std::count(numbers.begin(), numbers.end(), number);
    if (count < kLeastCount || count * kOneOf < all || 2 * count > all) continue;
    float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
    for (const float one : numbers)
      if (one != number) low = std::min(low, one), high = std::max(high, one);
    if ((number < low ? low - number : number - high) > high - low)
      return {.number = number, .count = count, .of = all};
  }
  return {};
}

// Row by row; of some rows all over the table the numbers of each column are kept.
class ColumnReader {
 public:
  ColumnReader(const std::vector<TableColumn>& columns, std::int64_t rows) : columns_(columns), rows_(rows) {
    constexpr std::int64_t kMostRows = 4096, kMostNumbers = std::int64_t{1} << 22;
    const auto count = std::max<std::int64_t>(1, std::ssize(columns));
    kept_ = std::min(rows, std::clamp<std::int64_t>(kMostNumbers / count, 64, kMostRows));
    sizes_.rows = rows;
    sizes_.least.resize(columns.size(), std::numeric_limits<float>::max());
    sizes_.greatest.resize(columns.size(), std::numeric_limits<float>::lowest());
    numbers_.resize(columns.size());
  }

  void add(std::int64_t row, const float* cells) {
    const bool is_kept = taken_ < kept_ && row == taken_ * rows_ / kept_;
    if (is_kept) ++taken_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const float number = columns_[i].words.empty() ? *cells : 0;
      sizes_.least[i] = std::min(sizes_.least[i], number);
      sizes_.greatest[i] = std::max(sizes_.greatest[i], number);
      if (is_kept) numbers_[i].push_back(number);
      cells += columns_[i].elements();
    }
  }

  ColumnSizes finish() {
    constexpr double kTenth = 0.1, kHalf = 0.5;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (rows_ == 0) sizes_.least[i] = sizes_.greatest[i] = 0;
      sizes_.largest.push_back(std::max(std::abs(sizes_.least[i]), std::abs(sizes_.greatest[i])));
      std::vector<float>& numbers = numbers_[i];
      sizes_.low.push_back(quantile(numbers, kTenth));
      sizes_.middle.push_back(quantile(numbers, kHalf));
      sizes_.high.push_back(quantile(numbers, 1 - kTenth));
      sizes_.alone.push_back(number_alone(numbers));
      const auto all = static_cast<float>(numbers.size());
      const auto is_whole = [](float one) { return one == std::floor(one); };
      const auto whole = static_cast<float>(std::count_if(numbers.begin(), numbers.end(), is_whole));
      sizes_.whole.push_back(all == 0 ? 0 : whole / all);
      std::erase(numbers, 0.0F);
      std::transform(numbers.begin(), numbers.end(), numbers.begin(),
                     [](float one) { return std::abs(one); });
      sizes_.filled.push_back(all == 0 ? 0 : static_cast<float>(numbers.size()) / all);
      // The upper one of two in the middle.
      const auto middle = numbers.begin() + std::ssize(numbers) / 2;
      std::nth_element(numbers.begin(), middle, numbers.end());
      sizes_.typical.push_back(numbers.empty() ? 0 : *middle);
    }
    return std::move(sizes_);
  }

 private:
  const std::vector<TableColumn>& columns_;
  std::int64_t rows_, kept_ = 0, taken_ = 0;
  ColumnSizes sizes_;
  std::vector<std::vector<float>> numbers_;
};

// Of a column that is 0 in some rows: whether its other numbers are many enough to be compared.
bool is_told_by_others(const ColumnSizes& sizes, std::size_t i) {
  constexpr float kMost = 0.5;
  return sizes.filled[i] >= kMost ||
         sizes.filled[i] * static_cast<float>(sizes.rows) >= static_cast<float>(kTellingRows);
}

// As scale_warning has it; but fractions for percents are 100 times smaller, and of the largest of some rows
// chance makes three times less or more of that. Many rows that are 30 times smaller are no chance.
bool is_of_another_scale(float given, float trained, bool have_many) {
  constexpr float kMuchSmaller = 30;
  if (!scale_warning("", given, trained).empty()) return true;
  return have_many && given != 0 && given * kMuchSmaller < trained;
}

// The absolute number that hardly more than a tenth of them exceed.
float most_of(const ColumnSizes& sizes, std::size_t i) {
  return std::max(std::abs(sizes.low[i]), std::abs(sizes.high[i]));
}

// Whether a column's numbers are of quite another size.
bool is_of_another_size(const ColumnSizes& given, const ColumnSizes& trained, std::size_t i) {
  constexpr float kMost = 0.5, kAlmostAll = 0.9;
  const bool is_known = trained.typical.size() == trained.largest.size();
  if (given.largest[i] == 0 && is_known) return given.rows >= kTellingRows && trained.filled[i] >= kAlmostAll;
  if (!is_told_by_others(given, i)) return false;
  if (is_known && trained.largest[i] > 0 && !is_told_by_others(trained, i)) return false;
  // Few rows may well be all 0.
  if (trained.largest[i] == 0)
    return given.filled[i] >= kMost && (trained.rows == 0 || trained.rows >= kTellingRows);
  if (given.largest[i] < trained.largest[i] && given.rows < kTellingRows) return false;
  if (!is_known) return is_of_another_scale(given.largest[i], trained.largest[i], false);
  const bool have_many = given.rows >= kTellingRows && trained.rows >= kTellingRows;
  if (!is_of_another_scale(given.typical[i], trained.typical[i], have_many)) return false;
  if (is_of_another_scale(given.largest[i], trained.largest[i], have_many)) return true;
  // A single 9999 among fractions, which stands for something unknown, hides that the others are percents.
  return have_many && trained.high.size() == trained.largest.size() &&
         is_of_another_scale(most_of(given, i), most_of(trained, i), have_many);
}

// One of its words: "customer_id", "zip", "Postal Code", "userId".
bool is_name_of_code(const std::string& name) {
  std::string word;
  const auto ends_code = [&] {
    const std::string ended = std::exchange(word, "");
    for (const char* const code : {"id", "ids", "code", "zip", "zipcode", "postcode", "plz", "sku", "phone"})
      if (ended == code) return true;
    return false;
  };
  char last = ' ';
  for (const char c : name + " ") {
    const char small = lower_case(c);
    const bool is_letter = small >= 'a' && small <= 'z';
    const bool begins_word = c != small && last >= 'a' && last <= 'z';
    if ((!is_letter || begins_word) && ends_code()) return true;
    if (is_letter) word += small;
    last = c;
  }
  return false;
}

// Of a column, as far as its ends tell.
bool are_whole(const ColumnSizes& sizes, std::size_t i) {
  return sizes.least[i] == std::floor(sizes.least[i]) && sizes.greatest[i] == std::floor(sizes.greatest[i]);
}

// Whether numbers were rounded that nearly all had fractions in the training. A single number says nothing,
// nor do large ones, of which f32 itself holds no fractions.
bool are_rounded(const ColumnSizes& given, const ColumnSizes& trained, std::size_t i) {
  constexpr float kMost = 0.15F;  // a dose in quarters is whole in some rows, and in all of a group
  constexpr float kAllHaveFractions = 1 << 20;
  return trained.whole.size() == trained.largest.size() && trained.whole[i] <= kMost &&
         trained.rows >= kTellingRows && given.rows >= kTellingRows && given.whole[i] == 1 &&
         given.least[i] != given.greatest[i] && given.largest[i] < kAllHaveFractions;
}

// Whole numbers that all have as many digits, or whose name says it, may be codes, which have no unit.
bool may_be_code(const TableColumn& column, const ColumnSizes& given, const ColumnSizes& trained,
                 std::size_t i) {
  constexpr float kFewDigits = 1000;
  if (trained.least.size() != trained.largest.size() || !are_whole(given, i) || !are_whole(trained, i))
    return false;
  if (is_name_of_code(column.name)) return true;
  const auto digits = [](float number) { return std::floor(std::log10(number)); };
  const float least = std::min(given.least[i], trained.least[i]);
  return least >= kFewDigits && digits(least) == digits(std::max(given.greatest[i], trained.greatest[i]));
}

// Whether nearly all numbers lie where the training has none, and by far: Kelvin for Celsius, -3 for 3.
bool is_outside(const ColumnSizes& given, const ColumnSizes& trained, std::size_t i) {
  constexpr float kFar = 0.4, kNear = 0.1, kNearOfOwn = 0.02, kFactor = 1.5;
  if (trained.least.size() != trained.largest.size() || given.rows < kTellingRows ||
      trained.rows < kTellingRows)
    return false;
  const float least = trained.least[i], greatest = trained.greatest[i], span = greatest - least;
  const bool is_above = given.low[i] > greatest;
  if (span == 0 || (!is_above && given.high[i] >= least)) return false;
  const float middle = given.middle[i];
  if ((is_above ? middle - greatest : least - middle) <= kFar * span) return false;
  const float nearest = is_above ? greatest : least;
  if ((middle < 0) != (nearest < 0)) return true;
  // What is counted goes on right behind the training's: numbers of rows, minutes, months.
  const float own_span = given.greatest[i] - given.least[i];
  const float step = are_whole(given, i) && are_whole(trained, i) ? 1 : 0;
  const float gap = (is_above ? given.least[i] - greatest : least - given.greatest[i]) - step;
  if (gap >= 0 && gap <= kNear * span + kNearOfOwn * own_span) return false;
  // Years and other dates are of one size.
  const auto [smaller, larger] = std::minmax({std::abs(middle), std::abs(nearest)});
  return larger > kFactor * smaller;
}

// "-999 in 20 of 60 rows of column 2 (20 to 29.9 in the training)"; "" where no such number stands alone.
std::string text_of_stand_in(const std::string& column, const ColumnSizes& given, const ColumnSizes& trained,
                             std::size_t i) {
  if (trained.least.size() != trained.largest.size() || trained.rows < kTellingRows || given.alone.empty())
    return "";
  const auto& [number, count, of] = given.alone[i];
  const float least = trained.least[i], greatest = trained.greatest[i], span = greatest - least;
  const bool is_far = number < least - span || number > greatest + span;
  if (count == 0 || span == 0 || !is_far) return "";
  return fmt::format("{:g} in {} of {} of column {} ({:g} to {:g} in the training)", number, count,
                     count_of(of, "row"), column, least, greatest);
}

std::string text_of_size(const std::string& column, const ColumnSizes& given, const ColumnSizes& trained,
                         std::size_t i) {
  const bool by_largest =
      trained.typical.empty() || given.largest[i] == 0 || trained.largest[i] == 0 ||
      (is_of_another_scale(given.largest[i], trained.largest[i], true) &&
       (given.largest[i] > trained.largest[i]) == (given.typical[i] > trained.typical[i]));
  return fmt::format("{}up to {:g} in column {} ({:g} in the training)", by_largest ? "" : "mostly ",
                     by_largest ? given.largest[i] : most_of(given, i), column,
                     by_largest ? trained.largest[i] : most_of(trained, i));
}

// Those of the first columns, and how many there are more.
std::string some_of_them(std::vector<std::string> columns) {
  constexpr std::size_t kMostNamed = 8;
  const std::size_t more = columns.size() - std::min(columns.size(), kMostNamed);
  columns.resize(columns.size() - more);
  const std::string text = fmt::format("{}", fmt::join(columns, ", "));
  return more == 0 ? text
                   : fmt::format("{}, and so in {} more", text,
                                 count_of(static_cast<std::int64_t>(more), "column"));
}

}  // namespace

ColumnSizes sizes_of_columns(const std::vector<TableColumn>& columns, const Tensor& rows) {
  ColumnReader reader(columns, rows.shape().dim(0));
  const std::int64_t elements = rows.elements() / std::max<std::int64_t>(1, rows.shape().dim(0));
  for (std::int64_t i = 0; i < rows.shape().dim(0); ++i) reader.add(i, rows.data<float>() + i * elements);
  return reader.finish();
}

std::vector<TableColumn> unit_columns(const TableSchema* table, const Shape& sample, DType dtype) {
  constexpr std::int64_t kMostColumns = 2048;  // for each, config.json keeps six numbers
  if (table != nullptr) return table->features;
  if (dtype != DType::f32 || sample.rank() != 1 || sample.dim(0) > kMostColumns) return {};
  return plain_table(sample.dim(0)).features;
}

std::vector<TableColumn> unit_columns(const SampleKind& kind) {
  if (kind.are_pixels && !kind.table) return {};
  return unit_columns(kind.table.get(), kind.shape, kind.dtype);
}

SampleSizes sizes_of_samples(const std::vector<TableColumn>& columns, const SampleSet& samples) {
  return sizes_of_samples(columns, samples, 0, samples.size());
}

SampleSizes sizes_of_samples(const std::vector<TableColumn>& columns, const SampleSet& samples,
                             std::int64_t begin, std::int64_t end) {
  const SampleKind& kind = samples.kind();
  const bool has_numbers = kind.label_kind == LabelKind::numbers;
  if (kind.decoded || (columns.empty() && !has_numbers)) return {};
  const std::vector<TableColumn> outputs = has_numbers ? number_columns(kind) : std::vector<TableColumn>();
  const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  ColumnReader of_columns(columns, end - begin), of_labels(outputs, end - begin);
  for (std::int64_t i = begin; i < end; ++i) {
    samples.read(i, nullptr, one, 0);
    if (!columns.empty()) of_columns.add(i - begin, one.samples.data<float>());
    if (has_numbers) of_labels.add(i - begin, one.labels.data<float>());
  }
  SampleSizes sizes;
  if (!columns.empty()) sizes.columns = of_columns.finish();
  if (has_numbers) sizes.labels = of_labels.finish();
  return sizes;
}

ColumnSizes joined(ColumnSizes a, const ColumnSizes& b) {
  const auto join = [&](std::vector<float> ColumnSizes::*which, auto of_two) {
    if ((a.*which).size() != (b.*which).size()) (a.*which).clear();  // of one nobody knows it
    for (std::size_t i = 0; i < (a.*which).size(); ++i) (a.*which)[i] = of_two((a.*which)[i], (b.*which)[i]);
  };
  const auto larger = [](float one, float other) { return std::max(one, other); };
  if (b.largest.empty()) return a;
  for (auto which : {&ColumnSizes::largest, &ColumnSizes::typical, &ColumnSizes::filled,
                     &ColumnSizes::greatest, &ColumnSizes::high})
    join(which, larger);
  for (auto which : {&ColumnSizes::least, &ColumnSizes::low, &ColumnSizes::whole})
    join(which, [](float one, float other) { return std::min(one, other); });
  a.rows = std::max(a.rows, b.rows);
  return a;
}

std::vector<TableColumn> number_columns(const SampleKind& kind) {
  if (kind.table && std::ssize(kind.table->labels) == kind.classes) return kind.table->labels;
  std::vector<TableColumn> columns(static_cast<std::size_t>(kind.classes));
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].place = i;
  return columns;
}

std::string column_scale_warning(const std::string& name, const std::vector<TableColumn>& columns,
                                 const ColumnSizes& given, const ColumnSizes& trained) {
  if (trained.largest.size() != columns.size() || given.largest.size() != columns.size()) return "";
  std::vector<std::string> measures, codes, rounded, unknown;
  bool are_outside = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].words.empty()) continue;
    const std::string column = column_text(columns[i].place, columns[i].name);
    auto& told = may_be_code(columns[i], given, trained, i) ? codes : measures;
    if (is_of_another_size(given, trained, i)) told.push_back(text_of_size(column, given, trained, i));
    else if (is_outside(given, trained, i)) {
      are_outside = true;
      told.push_back(fmt::format("{:g} to {:g} in column {} ({:g} to {:g} in the training)", given.least[i],
                                 given.greatest[i], column, trained.least[i], trained.greatest[i]));
    } else if (std::string text = text_of_stand_in(column, given, trained, i); !text.empty()) {
      unknown.push_back(std::move(text));
    } else if (are_rounded(given, trained, i)) {
      rounded.push_back(fmt::format("column {}", column));
    }
  }
  std::vector<std::string> texts;
  // Of a column that grows, too.
  const char* const of_far =
      are_outside ? ", and of numbers so far outside the model has learnt nothing" : "";
  if (!measures.empty())
    texts.push_back(
        fmt::format("numbers are {}; each column must be in the unit that it had in the training{}",
                    some_of_them(measures), of_far));
  if (!codes.empty())
    texts.push_back(
        fmt::format("numbers are {}; a code, such as an id or a postal code, is no measure and is better "
                    "left out of a training "
                    "(--ignore), and a measure must be in the unit that it had in the training{}",
                    some_of_them(codes), measures.empty() ? of_far : ""));
  if (!unknown.empty())
    texts.push_back(
        fmt::format("numbers are {}; if one stands for what nobody knows, its cell is better empty "
                    "(--missing in the training)",
                    some_of_them(unknown)));
  if (!rounded.empty())
    texts.push_back(fmt::format(
        "all numbers are whole in {}, as if they were rounded, and in the training nearly all had fractions",
        some_of_them(rounded)));
  return texts.empty() ? "" : fmt::format("{}: {}", name, fmt::join(texts, "; "));
}

}  // namespace kolo::models::detail

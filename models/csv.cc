#include <kolo/models/csv.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>

namespace kolo::models {
namespace {

constexpr std::uint64_t kMostCsvBytes = std::uint64_t{1} << 36;  // what is read whole

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Without the quotes around it.
std::string_view plain(std::string_view field) {
  field = trimmed(field);
  const bool quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return quoted ? trimmed(field.substr(1, field.size() - 2)) : field;
}

// Of a number beyond the range of doubles: whether it is too small for it, not too large.
bool is_below_one(std::string_view field) {
  const std::size_t exponent = field.find_first_of("eE");
  if (exponent != std::string_view::npos) return field.substr(exponent + 1).starts_with('-');
  return field.find('.') < field.find_first_of("123456789");
}

// Nothing where it is no number, NaN, or more than f32 holds.
std::optional<double> number(std::string_view field) {
  double value = 0;
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::result_out_of_range) value = is_below_one(field) ? 0 : HUGE_VAL;
  else if (error != std::errc()) return std::nullopt;
  if (end != field.data() + field.size() || field.empty()) return std::nullopt;
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return std::nullopt;
  return value;
}

// Commas within quotes are part of a name.
std::size_t end_of_field(std::string_view line, std::size_t begin) {
  const std::size_t comma = std::min(line.find(',', begin), line.size());
  const std::size_t first = line.find_first_not_of(" \t", begin);
  if (first >= line.size() || line[first] != '"') return comma;
  const std::size_t closing = line.find('"', first + 1);
  return closing < line.size() && closing > comma ? std::min(line.find(',', closing), line.size()) : comma;
}

class Reader {
 public:
  /// features: columns beside a label that is not looked at; none: labels are read.
  explicit Reader(const std::string& path, std::optional<std::size_t> features = {})
      : path_(path), features_(features) {}

  void take(std::string_view line) {
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (trimmed(line).empty()) return;
    fields_.clear();
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = end_of_field(line, begin);
      fields_.push_back(plain(line.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (columns_ == 0) start();
    else sample();
  }

  CsvTable table() const {
    if (labels_.empty()) throw InvalidArgumentError("{}: there are no samples in it", path_);
    const auto samples = static_cast<std::int64_t>(labels_.size());
    return {Tensor::of<float>({samples, static_cast<std::int64_t>(columns_ - first_) - 1},
                              std::span<const float>(values_)),
            Tensor::of<std::int32_t>({samples}, std::span<const std::int32_t>(labels_)), note()};
  }

  CsvRows rows() const {
    if (lines_.empty()) throw InvalidArgumentError("{}: there are no samples in it", path_);
    return {
        Tensor::of<float>({static_cast<std::int64_t>(lines_.size()), static_cast<std::int64_t>(*features_)},
                          std::span<const float>(values_)),
        lines_};
  }

 private:
  void start() {
    columns_ = fields_.size();
    label_ = columns_ - 1;
    const auto named = label_by_name();
    const bool names = named || counts_columns() || std::none_of(fields_.begin(), fields_.end(), number);
    if (names && fields_[0].empty()) first_ = 1;
    if (features_) check_features();
    else if (columns_ < first_ + 2)
      throw InvalidArgumentError("{}, line {}: one column; there must be a label and at least one beside it",
                                 path_, line_);
    if (named) label_ = *named;
    if (features_ && columns_ - first_ == *features_) label_ = columns_;  // there is none
    if (!names) return sample();
    if (label_ < columns_) label_name_ = fields_[label_];
  }

  void check_features() const {
    const std::size_t found = columns_ - first_;
    if (found == *features_ || found == *features_ + 1) return;
    throw InvalidArgumentError(
        "{}, line {}: {} columns; the model takes {}, and beside them there may be a label", path_, line_,
        found, *features_);
  }

  std::optional<std::size_t> label_by_name() const {
    for (const std::string_view name : {"label", "class", "target", "species", "y"})
      for (std::size_t i = 0; i < fields_.size(); ++i)
        if (std::equal(name.begin(), name.end(), fields_[i].begin(), fields_[i].end(),
                       [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); }))
          return i;
    return std::nullopt;
  }

  // 0,1,2,…: what pandas writes above an array's columns. Of two columns it may as well be a sample.
  bool counts_columns() const {
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (fields_[i] != std::to_string(i)) return false;
    return fields_.size() > 2;
  }

  std::string note() const {
    std::string text = fmt::format("label: column {}", label_ + 1);
    if (label_name_) text += fmt::format(" \"{}\"", *label_name_);
    return first_ == 1 ? text + ", left out: column 1, which has no name" : text;
  }

  void sample() {
    if (fields_.size() != columns_)
      throw InvalidArgumentError("{}, line {}: {} columns; the first line has {}", path_, line_,
                                 fields_.size(), columns_);
    for (std::size_t i = first_; i < columns_; ++i) {
      if (features_ && i == label_) continue;
      const std::optional<double> value = number(fields_[i]);
      if (!value)
        throw InvalidArgumentError("{}, line {}, column {}: {:?} is no number that f32 holds", path_, line_,
                                   i + 1, fields_[i].substr(0, 40));
      if (i != label_) values_.push_back(static_cast<float>(*value));
      else if (*value >= 0 && *value <= std::numeric_limits<std::int32_t>::max() &&
               *value == std::floor(*value))
        labels_.push_back(static_cast<std::int32_t>(*value));
      else
        throw InvalidArgumentError("{}, line {}, column {}: label {}; labels are whole numbers from 0 on",
                                   path_, line_, i + 1, fields_[i].substr(0, 40));
    }
    if (features_) lines_.push_back(static_cast<std::int64_t>(line_));
  }

  const std::string& path_;
  std::size_t line_ = 0, columns_ = 0, label_ = 0;
  std::size_t first_ = 0;  // 1 where the first column is left out
  const std::optional<std::size_t> features_;
  std::optional<std::string> label_name_;
  std::vector<std::string_view> fields_;
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int64_t> lines_;
};

void read_lines(const std::string& path, Reader& reader) {
  const std::string text = InputFile(path).read_all(kMostCsvBytes);
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // as spreadsheets begin UTF-8
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    reader.take(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

CsvTable read_csv(const std::filesystem::path& path) {
  const std::string name = path.string();
  Reader reader(name);
  read_lines(name, reader);
  return reader.table();
}

CsvRows read_csv_rows(const std::filesystem::path& path, std::int64_t columns) {
  const std::string name = path.string();
  Reader reader(name, static_cast<std::size_t>(columns));
  read_lines(name, reader);
  return reader.rows();
}

}  // namespace kolo::models

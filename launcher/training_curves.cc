#include <kolo/launcher/training_curves.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

// NaN and infinities too; nothing where the word is no number.
std::optional<double> number_of(std::string_view word) {
  double value = 0;
  if (word.starts_with('+')) word.remove_prefix(1);
  const char* const end = word.data() + word.size();
  const auto [parsed, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && parsed == end ? std::optional<double>(value) : std::nullopt;
}

using nlohmann::json;

const std::vector<std::string> kTitles = {"loss",
                                          "accuracy",
                                          "exact match",
                                          "MAE",
                                          "RMSE",
                                          "R²",
                                          "AUC",
                                          "precision",
                                          "recall",
                                          "F1",
                                          "learning rate",
                                          "samples/s",
                                          "share of communication"};

// A number of each row of kolo-train's metrics.
struct Metric {
  const char *key, *title, *curve;
};
constexpr std::array kCharted = {Metric{"loss", "loss", ""},
                                 Metric{"test_loss", "loss", "test"},
                                 Metric{"learning_rate", "learning rate", ""},
                                 Metric{"test_accuracy", "accuracy", "test"},
                                 Metric{"test_exact_match", "exact match", "test"},
                                 Metric{"test_mae", "MAE", "test"},
                                 Metric{"test_rmse", "RMSE", "test"},
                                 Metric{"test_r2", "R²", "test"},
                                 Metric{"auc", "AUC", "test"}};
// Of each class, label or number, in the lists of these names.
constexpr std::array kListed = {Metric{"precision", "precision", ""},
                                Metric{"recall", "recall", ""},
                                Metric{"f1", "F1", ""},
                                Metric{"mae", "MAE", ""},
                                Metric{"rmse", "RMSE", ""},
                                Metric{"r2", "R²", ""}};
constexpr std::array kLists = {std::pair("classes", "class"), std::pair("labels", "label"),
                               std::pair("targets", "target")};
constexpr std::size_t kMostListed = 12;  // more of them are one curve, their mean

class Groups {
 public:
  void add(const std::string& title, const std::string& curve, double x, double y) {
    if (!std::isfinite(x)) return;
    CurveGroup& group = found(groups_, title, [](const CurveGroup& g) { return g.title; });
    found(group.curves, curve, [](const Curve& c) { return c.name; }).points.emplace_back(x, y);
  }
  // What lies behind x was made by a training that has been begun anew since.
  void cut_behind(double x) {
    for (CurveGroup& group : groups_)
      for (Curve& curve : group.curves)
        while (!curve.points.empty() && curve.points.back().first >= x) curve.points.pop_back();
  }
  std::vector<CurveGroup> sorted() {
    std::stable_sort(groups_.begin(), groups_.end(), [](const CurveGroup& a, const CurveGroup& b) {
      return place_of_title(a.title) < place_of_title(b.title);
    });
    return std::move(groups_);
  }

 private:
  template <typename Entry, typename NameOf>
  static Entry& found(std::vector<Entry>& entries, const std::string& name, const NameOf& name_of) {
    for (Entry& entry : entries)
      if (name_of(entry) == name) return entry;
    entries.push_back({name, {}});
    return entries.back();
  }

  std::vector<CurveGroup> groups_;
};

// what: the key of each entry's name.
void add_list(const json& entries, const char* what, double x, Groups& groups) {
  for (const Metric& metric : kListed) {
    double sum = 0, count = 0;
    for (const json& entry : entries) {
      const auto value = entry.find(metric.key);
      if (value == entry.end() || !value->is_number()) continue;
      sum += value->get<double>(), ++count;
      if (entries.size() <= kMostListed)
        groups.add(metric.title, entry.at(what).get<std::string>(), x, *value);
    }
    if (entries.size() > kMostListed && count > 0)
      groups.add(metric.title, fmt::format("mean of {} {}s", entries.size(), what), x, sum / count);
  }
}

// JSON has no NaN and no infinity: kolo-train writes null. In its last row null says that nothing was
// measured.
void add_row(const json& row, double x, Groups& groups) {
  const std::string event = row.value("event", "");
  const auto add_value = [&](const json& value, const char* title, const std::string& curve) {
    if (value.is_number()) groups.add(title, curve, x, value.get<double>());
    else if (value.is_null() && event != "done") groups.add(title, curve, x, std::nan(""));
  };
  for (const Metric& metric : kCharted)
    if (const auto value = row.find(metric.key); value != row.end())
      add_value(*value, metric.title, metric.curve);
  for (const auto& [list, what] : kLists)
    // The only number to find has the errors of the whole.
    if (const auto entries = row.find(list);
        entries != row.end() && entries->is_array() && entries->size() > 1)
      add_list(*entries, what, x, groups);
  if (const auto rate = row.find("samples_per_s"); rate != row.end() && event == "progress")
    add_value(*rate, "samples/s", "");
  if (const auto shares = row.find("communication_share"); shares != row.end() && shares->is_array())
    for (std::size_t rank = 0; rank < shares->size(); ++rank)
      add_value((*shares)[rank], "share of communication", fmt::format("rank {}", rank));
}

void read_jsonl(std::istream& file, const std::string& path, bool by_epoch, Groups& groups) {
  std::string line, run;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const json row = json::parse(line, nullptr, false);
    if (row.is_discarded() && file.eof()) return;  // a line that a process is writing, or did not end
    try {
      const double step = row.at("global_step").get<double>(), epoch = row.value("epoch", 0.0);
      const double x = by_epoch ? epoch : step;
      const std::string event = row.value("event", "");
      if (const std::string of = row.value("run", ""); of != run) {
        // A run that has no step, but tells what it is done with, has evaluated what is there.
        if (event == "run") groups.cut_behind(std::nextafter(x, HUGE_VAL));
        else if (event != "done") groups.cut_behind(x);
        run = of;
      }
      if (event == "run") continue;  // what the training is
      add_row(row, x, groups);
    } catch (const json::exception&) {
      throw std::runtime_error(fmt::format("{}:{}: this is no line of kolo-train's metrics", path, number));
    }
  }
}

std::vector<std::string> words_of(std::string_view line, char separator) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> fields;
  split_fields(line, separator, fields);
  std::vector<std::string> words;
  for (const std::string_view field : fields) words.push_back(unquoted(field));
  return words;
}

// "val_acc" is a point of the curve "validation" on the chart "accuracy".
std::pair<std::string, std::string> chart_of(std::string column) {
  std::string curve;
  for (const auto& [prefix, name] : {std::pair("val_", "validation"), {"test_", "test"}, {"train_", ""}})
    if (column.starts_with(prefix)) {
      column = column.substr(std::string_view(prefix).size()), curve = name;
      break;
    }
  if (column == "acc") column = "accuracy";
  if (column == "lr" || column == "learning_rate") column = "learning rate";
  return {column, curve};
}

struct Header {
  char separator;
  std::vector<std::string> columns;
  std::optional<std::size_t> place(std::string_view name) const {
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (lower_case(columns[i]) == name) return i;
    return std::nullopt;
  }
};

Header header_of(std::string line) {
  if (line.starts_with("\xEF\xBB\xBF")) line = line.substr(3);
  const char separator = line.find(';') != std::string::npos    ? ';'
                         : line.find('\t') != std::string::npos ? '\t'
                                                                : ',';
  return {separator, words_of(line, separator)};
}

// The numbers of a line. With semicolons a comma stands before the decimals.
std::vector<std::optional<double>> numbers_of(std::vector<std::string> words, char separator) {
  std::vector<std::optional<double>> numbers;
  for (std::string& word : words) {
    if (separator == ';') std::replace(word.begin(), word.end(), ',', '.');
    numbers.push_back(number_of(word));
  }
  return numbers;
}

constexpr std::array<const char*, 3> kSteps = {"global_step", "step", "epoch"};

// The column that x is taken from, and what it counts.
std::pair<std::optional<std::size_t>, std::string> x_column(const Header& header, bool by_epoch) {
  const auto epoch = header.place("epoch");
  if (by_epoch && epoch) return {epoch, "epoch"};
  for (const char* const name : kSteps)
    if (const auto place = header.place(name)) return {place, place == epoch ? "epoch" : "step"};
  return {std::nullopt, "row"};
}

// Keras counts epochs from 0; a point is what an epoch has ended with.
double first_epoch(const std::vector<std::vector<std::optional<double>>>& rows, std::size_t column) {
  const bool whole = std::all_of(rows.begin(), rows.end(),
                                 [&](const auto& row) { return std::floor(*row[column]) == *row[column]; });
  return whole && !rows.empty() && *rows[0][column] == 0 ? 1 : 0;
}

std::string read_csv(std::istream& file, const std::string& path, bool by_epoch, Groups& groups) {
  std::string line;
  std::getline(file, line);
  const Header header = header_of(line);
  const auto names = numbers_of(header.columns, header.separator);
  if (std::all_of(names.begin(), names.end(), [](const auto& number) { return number.has_value(); }))
    throw std::runtime_error(
        fmt::format("{}: its first line holds numbers; a header with the columns' names is missing", path));
  const auto [column, counted] = x_column(header, by_epoch);
  std::vector<std::vector<std::optional<double>>> rows;
  for (int number = 2; std::getline(file, line); ++number) {
    const std::vector<std::string> words = words_of(line, header.separator);
    if (words == std::vector<std::string>{""}) continue;
    if (file.eof() && words.size() < header.columns.size()) break;  // a process is writing it, or did not end
    if (words.size() != header.columns.size())
      throw std::runtime_error(fmt::format("{}:{}: {} fields; there are {} columns", path, number,
                                           words.size(), header.columns.size()));
    rows.push_back(numbers_of(words, header.separator));
    if (column && !(rows.back()[*column] && std::isfinite(*rows.back()[*column])))
      throw std::runtime_error(fmt::format("{}:{}: {} is \"{}\", which is no number", path, number,
                                           header.columns[*column], words[*column]));
  }
  const double shift = counted == "epoch" ? first_epoch(rows, *column) : 0;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < header.columns.size(); ++i) {
      const std::string name = lower_case(header.columns[i]);
      if (!rows[row][i] || name.empty() || std::find(kSteps.begin(), kSteps.end(), name) != kSteps.end())
        continue;
      const auto [title, curve] = chart_of(header.columns[i]);
      groups.add(title, curve, column ? *rows[row][*column] + shift : static_cast<double>(row + 1),
                 *rows[row][i]);
    }
  return counted;
}

}  // namespace

std::size_t place_of_title(const std::string& title) {
  return static_cast<std::size_t>(std::find(kTitles.begin(), kTitles.end(), title) - kTitles.begin());
}

TrainingRun read_training(const std::string& text, const std::string& path, bool by_epoch) {
  std::istringstream file(text);
  Groups groups;
  TrainingRun run;
  run.x = by_epoch ? "epoch" : "step";
  const std::size_t first = text.find_first_not_of(" \r\n");
  if (path.ends_with(".jsonl") || (first != std::string::npos && text[first] == '{'))
    read_jsonl(file, path, by_epoch, groups);
  else if (first != std::string::npos) run.x = read_csv(file, path, by_epoch, groups);
  run.groups = groups.sorted();
  if (run.groups.empty()) throw std::runtime_error(fmt::format("{}: there is nothing to plot in it", path));
  return run;
}

bool is_csv_log(const std::string& path) {
  constexpr std::uint64_t kLongestHeader = 1 << 16;
  std::string start;
  try {
    InputFile file(path);
    start.resize(std::min(kLongestHeader, file.bytes()));
    file.read(0, start.data(), start.size());
  } catch (const Error&) {
    return false;
  }
  const std::size_t end = start.find('\n');
  if (end == std::string::npos) return false;
  const Header header = header_of(start.substr(0, end));
  return header.columns.size() > 1 && x_column(header, false).first;
}

}  // namespace kolo::launcher

#include <kolo/launcher/training_curves.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace kolo::launcher {
namespace {

// NaN and infinities too; nothing where the word begins with no number.
std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto error = std::from_chars(word.data(), word.data() + word.size(), value).ec;
  return error == std::errc() ? std::optional<double>(value) : std::nullopt;
}

using nlohmann::json;

const std::vector<std::string> kTitles = {"loss", "accuracy", "learning rate", "samples/s",
                                          "share of communication"};

class Groups {
 public:
  void add(const std::string& title, const std::string& curve, double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
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
    const auto place = [](const CurveGroup& group) {
      return std::find(kTitles.begin(), kTitles.end(), group.title) - kTitles.begin();
    };
    std::stable_sort(groups_.begin(), groups_.end(),
                     [&](const CurveGroup& a, const CurveGroup& b) { return place(a) < place(b); });
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

void add_row(const json& row, double x, Groups& groups) {
  const auto add = [&](const char* key, const char* title, const char* curve) {
    if (const auto value = row.find(key); value != row.end() && value->is_number())
      groups.add(title, curve, x, value->get<double>());
  };
  add("loss", "loss", "");
  add("learning_rate", "learning rate", "");
  add("test_accuracy", "accuracy", "test");
  if (row.value("event", "") == "progress") add("samples_per_s", "samples/s", "");
  if (const auto shares = row.find("communication_share"); shares != row.end() && shares->is_array())
    for (std::size_t rank = 0; rank < shares->size(); ++rank)
      if ((*shares)[rank].is_number())
        groups.add("share of communication", fmt::format("rank {}", rank), x, (*shares)[rank].get<double>());
}

void read_jsonl(std::istream& file, const std::string& path, bool by_epoch, Groups& groups) {
  std::string line, run;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const json row = json::parse(line, nullptr, false);
    if (row.is_discarded() && file.eof()) return;  // a killed process has left a part of a line
    if (!row.is_object() || !row.contains("global_step"))
      throw std::runtime_error(fmt::format("{}:{}: this is no line of kolo-train's metrics", path, number));
    const double x = by_epoch ? row.value("epoch", 0.0) : row["global_step"].get<double>();
    if (const std::string of = row.value("run", ""); of != run) groups.cut_behind(x), run = of;
    add_row(row, x, groups);
  }
}

// Words in quotes may hold the separator, and quotes that are doubled (RFC 4180).
std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> words = {""};
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == '"' && in_quotes && i + 1 < line.size() && line[i + 1] == '"') words.back() += line[++i];
    else if (letter == '"') in_quotes = !in_quotes;
    else if (letter == separator && !in_quotes) words.emplace_back();
    else if (letter != '\r') words.back() += letter;
  }
  return words;
}

// "val_acc" is a point of the curve "validation" on the chart "accuracy".
std::pair<std::string, std::string> chart_of(std::string column) {
  const bool validation = column.rfind("val_", 0) == 0;
  if (validation) column = column.substr(4);
  if (column == "acc") column = "accuracy";
  if (column == "lr") column = "learning rate";
  return {column, validation ? "validation" : ""};
}

void read_csv(std::istream& file, const std::string& path, Groups& groups) {
  std::string line;
  std::getline(file, line);
  const char separator = line.find(';') != std::string::npos    ? ';'
                         : line.find('\t') != std::string::npos ? '\t'
                                                                : ',';
  const std::vector<std::string> columns = split(line, separator);
  if (columns.empty() || columns[0] != "epoch")
    throw std::runtime_error(
        fmt::format("{}: its first column is not \"epoch\", as CSVLogger writes it", path));
  for (int number = 2; std::getline(file, line); ++number) {
    const std::vector<std::string> words = split(line, separator);
    if (words.size() != columns.size())
      throw std::runtime_error(
          fmt::format("{}:{}: {} fields; there are {} columns", path, number, words.size(), columns.size()));
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto epoch = number_of(words[0]), value = number_of(words[i]);
      const auto [title, curve] = chart_of(columns[i]);
      if (value) groups.add(title, curve, epoch.value_or(0) + 1, *value);
    }
  }
}

}  // namespace

bool is_csv(const std::string& path) { return std::filesystem::path(path).extension() == ".csv"; }

TrainingRun read_training(const std::string& path, bool by_epoch) {
  std::filesystem::path file_path = path;
  if (std::filesystem::is_directory(file_path)) file_path /= "metrics.jsonl";
  std::ifstream file(file_path);
  if (!file)
    throw std::runtime_error(fmt::format(
        "{}: cannot be read; `plot` takes the folder of kolo-train --log-dir, or a CSV of Keras' CSVLogger",
        file_path.string()));
  const std::filesystem::path named =
      file_path.filename() == "metrics.jsonl" ? file_path.parent_path() : file_path;
  const std::string name = std::filesystem::absolute(named).lexically_normal().filename().string();
  Groups groups;
  if (is_csv(path)) read_csv(file, file_path.string(), groups);
  else read_jsonl(file, file_path.string(), by_epoch, groups);
  TrainingRun run{.name = is_csv(path) ? std::filesystem::path(name).stem().string() : name,
                  .groups = groups.sorted(),
                  .by_epoch = by_epoch || is_csv(path)};
  if (run.groups.empty())
    throw std::runtime_error(fmt::format("{}: there is nothing to plot in it", file_path.string()));
  return run;
}

}  // namespace kolo::launcher

#include <kolo/launcher/plot_page.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kolo::launcher {
namespace {

constexpr double kWidth = 360, kHeight = 220, kLeft = 46, kRight = 20, kTop = 10, kBottom = 34;
constexpr std::size_t kMostPoints = 400;
constexpr std::size_t kColors = 6;

// Okabe and Ito's colours, which stay apart for colour-blind readers; on dark ground lighter ones.
constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>kolo: trainings</title>
<style>
:root { --ground: #fcfcfb; --card: #fff; --ink: #1f2328; --soft: #656d76; --line: #d8dee4;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b07d00; --c5: #56728f; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e6e9ec; --soft: #9aa4ae;
  --line: #353b42; --c0: #56b4e9; --c1: #ff9a4d; --c2: #3dcfa0; --c3: #e59acb; --c4: #f2c14e; --c5: #a9bccf; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 20px 16px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; }
h1 { font-size: 1.25rem; margin: 0 0 4px; } h2 { font-size: .95rem; margin: 0 0 4px; font-weight: 600; }
h2 small { font-weight: 400; color: var(--soft); }
.runs { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 16px; padding: 0; list-style: none; }
.runs i { display: inline-block; width: 18px; height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); gap: 14px; }
figure { margin: 0; padding: 12px; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  break-inside: avoid; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .axis { stroke: var(--soft); stroke-width: 1; }
svg polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
figcaption { color: var(--soft); font-size: .82rem; }
table { border-collapse: collapse; margin-top: 18px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); font-weight: 400; }
th:first-child { text-align: left; } thead th { color: var(--soft); }
.table { overflow-x: auto; }
@media print { body { padding: 0; background: #fff; } figure { border-color: #ccc; } }
</style></head><body><main>
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (c == '&') safe += "&amp;";
    else if (c == '"') safe += "&quot;";
    else safe += c;
  }
  return safe;
}

std::string number_text(double value) {
  if (std::abs(value) >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

// A dash pattern for each curve of a run.
std::string dashes(std::size_t curve) {
  constexpr std::array<const char*, 4> kPatterns = {"", "5 3", "2 3", "8 3 2 3"};
  const char* const pattern = kPatterns[curve % kPatterns.size()];
  return *pattern == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", pattern);
}

struct Line {
  std::size_t run;
  std::size_t number;  // among the run's curves on this chart
  std::string name;    // of its run and curve
  std::vector<std::pair<double, double>> points;
};

std::vector<Line> lines_of(const std::vector<TrainingRun>& runs, const std::string& title) {
  std::vector<Line> lines;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (const CurveGroup& group : runs[run].groups) {
      if (group.title != title) continue;
      for (std::size_t i = 0; i < group.curves.size(); ++i) {
        const Curve& curve = group.curves[i];
        if (curve.points.empty()) continue;
        lines.push_back(
            {run, i, curve.name.empty() ? runs[run].name : runs[run].name + ", " + curve.name, curve.points});
      }
    }
  return lines;
}

// No more points than can be seen; the last one stays.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<std::pair<double, double>> kept;
  for (std::size_t i = 0; i < kMostPoints; ++i)
    kept.push_back(points[i * (points.size() - 1) / (kMostPoints - 1)]);
  return kept;
}

// From values to places along one axis of a chart.
class Axis {
 public:
  Axis(double low, double high, bool logarithmic, double from, double to)
      : logarithmic_(logarithmic), from_(from), to_(to) {
    if (logarithmic) {
      for (int power = static_cast<int>(std::floor(std::log10(low) + 1e-9));
           power <= static_cast<int>(std::ceil(std::log10(high) - 1e-9)); ++power)
        ticks_.push_back(std::pow(10, power));
      if (ticks_.size() == 1) ticks_.push_back(ticks_[0] * 10);
    } else {
      ticks_ = ticks(low, high, 5);
    }
  }
  const std::vector<double>& marks() const { return ticks_; }
  double place(double value) const {
    const auto scaled = [&](double v) { return logarithmic_ ? std::log10(v) : v; };
    const double low = scaled(ticks_.front()), high = scaled(ticks_.back());
    return from_ + (scaled(value) - low) / (high - low) * (to_ - from_);
  }

 private:
  bool logarithmic_;
  double from_, to_;
  std::vector<double> ticks_;
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) { low = std::min(low, value), high = std::max(high, value); }
};

std::string marks_of(const Axis& across, const Axis& up) {
  std::string svg;
  for (const double tick : up.marks())
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, kWidth - kRight, up.place(tick), kLeft - 6, up.place(tick) + 3.5, number_text(tick));
  for (const double tick : across.marks())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", across.place(tick),
                       kHeight - kBottom + 15, number_text(tick));
  return svg + fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>\n", kLeft,
                           kWidth - kRight, kHeight - kBottom);
}

std::string drawn(const Line& line, const Axis& across, const Axis& up) {
  std::string points;
  for (const auto& [x, y] : thinned(line.points))
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", across.place(x), up.place(y));
  const std::string color = fmt::format("var(--c{})", line.run % kColors);
  const auto& [last_x, last_y] = line.points.back();
  return fmt::format(
      "<g><title>{0}: {1}</title><polyline points=\"{2}\" stroke=\"{3}\"{4}/>"
      "<circle cx=\"{5:.1f}\" cy=\"{6:.1f}\" r=\"2.4\" fill=\"{3}\"/></g>\n",
      escaped(line.name), number_text(last_y), points, color, dashes(line.number), across.place(last_x),
      up.place(last_y));
}

// What dashes mean, where a run has several curves.
std::string caption(const std::vector<Line>& lines) {
  std::vector<std::string> names;
  for (const Line& line : lines) {
    const std::size_t comma = line.name.find(", ");
    const std::string name = comma == std::string::npos ? "training" : line.name.substr(comma + 2);
    if (line.number == names.size()) names.push_back(name);
  }
  if (names.size() < 2) return "";
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format(
        "{}<svg style=\"display:inline;width:26px;height:6px\" viewBox=\"0 0 26 6\" "
        "aria-hidden=\"true\"><polyline "
        "points=\"1,3 25,3\" stroke=\"currentColor\"{}/></svg> {}",
        i == 0 ? "" : " &nbsp; ", dashes(i), escaped(names[i]));
  return "<figcaption>" + text + "</figcaption>";
}

std::string chart(const std::vector<TrainingRun>& runs, const std::string& title) {
  const std::vector<Line> lines = lines_of(runs, title);
  if (lines.empty()) return "";
  Range x, y;
  for (const Line& line : lines)
    for (const auto& [at, value] : line.points) x.take(at), y.take(value);
  const bool from_zero = title == "samples/s" || title == "share of communication";
  if (from_zero) y.take(0);
  if (title == "accuracy") y.take(1);
  const bool logarithmic = y.low > 0 && y.high / y.low > 100;
  const Axis across(x.low, x.high, false, kLeft, kWidth - kRight);
  const Axis up(y.low, y.high, logarithmic, kHeight - kBottom, kTop);
  std::string svg = marks_of(across, up);
  for (const Line& line : lines) svg += drawn(line, across, up);
  return fmt::format(
      "<figure><h2>{0}{1}</h2>\n<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{0}\">\n{4}"
      "<text x=\"{5}\" y=\"{6}\" text-anchor=\"middle\">{7}</text>\n</svg>{8}</figure>\n",
      escaped(title), logarithmic ? " <small>logarithmic</small>" : "", kWidth, kHeight, svg,
      (kLeft + kWidth - kRight) / 2, kHeight - 4, runs[0].by_epoch ? "epoch" : "step", caption(lines));
}

std::vector<std::string> titles_of(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> titles;
  for (const TrainingRun& run : runs)
    for (const CurveGroup& group : run.groups)
      if (std::find(titles.begin(), titles.end(), group.title) == titles.end()) titles.push_back(group.title);
  return titles;
}

std::string last_values(const std::vector<TrainingRun>& runs, const std::vector<std::string>& titles) {
  std::string head, rows;
  for (const std::string& title : titles) head += fmt::format("<th scope=\"col\">{}</th>", escaped(title));
  for (std::size_t run = 0; run < runs.size(); ++run) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(runs[run].name));
    for (const std::string& title : titles) {
      std::string text;
      for (const Line& line : lines_of(runs, title))
        if (line.run == run) text += (text.empty() ? "" : " / ") + number_text(line.points.back().second);
      rows += fmt::format("<td>{}</td>", text.empty() ? "–" : text);
    }
    rows += "</tr>\n";
  }
  return fmt::format(
      "<div class=\"table\"><table><thead><tr><th scope=\"col\">last value</th>{}</tr></thead><tbody>\n{}"
      "</tbody></table></div>\n",
      head, rows);
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low)) {
    const double around = std::max(std::abs(low) / 2, 1e-9);
    low -= around, high = low + 2 * around;
  }
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1., 2., 2.5, 5.})
    if (factor * power >= raw * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  std::vector<double> marks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) marks.push_back(i * step);
  return marks;
}

std::string plot_page(const std::vector<TrainingRun>& runs) {
  const std::vector<std::string> titles = titles_of(runs);
  std::string page = kHead;
  page += fmt::format("<h1>{}</h1>\n<ul class=\"runs\">\n",
                      runs.size() == 1 ? escaped(runs[0].name) : fmt::format("{} trainings", runs.size()));
  for (std::size_t run = 0; run < runs.size(); ++run)
    page += fmt::format("<li><i style=\"background:var(--c{})\"></i>{}</li>\n", run % kColors,
                        escaped(runs[run].name));
  page += "</ul>\n<div class=\"charts\">\n";
  for (const std::string& title : titles) page += chart(runs, title);
  return page + "</div>\n" + last_values(runs, titles) + "</main></body></html>\n";
}

}  // namespace kolo::launcher

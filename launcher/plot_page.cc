#include <kolo/launcher/plot_page.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <kolo/launcher/plot_parts.h>

namespace kolo::launcher {
namespace {

constexpr double kWidth = 360, kHeight = 232, kLeft = 50, kRight = 20, kTop = 18, kBottom = 38;
constexpr std::size_t kMostPoints = 400;

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
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  if (std::abs(value) >= 1e9) return fmt::format("{:.3g}", value);
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

using Points = std::vector<std::pair<double, double>>;

std::string color_of(std::size_t run) { return fmt::format("var(--c{})", run % kPlotColors); }

// Colours repeat after kPlotColors runs; with the shape 24 runs differ.
std::string marker(std::size_t run, double x, double y) {
  constexpr std::size_t kOfOneShape = kPlotColors / 2;
  constexpr std::array<const char*, 4> kShapes = {"m-2.4 0a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0-4.8 0z",
                                                  "m-2.4-2.4h4.8v4.8h-4.8z", "m0-3.2l3.2 5.6h-6.4z",
                                                  "m0-3.4l3.4 3.4l-3.4 3.4l-3.4-3.4z"};
  return fmt::format("<path d=\"M{:.1f} {:.1f}{}\" fill=\"{}\"/>", x, y,
                     kShapes[run / kOfOneShape % kShapes.size()], color_of(run));
}

struct Line {
  std::size_t run;
  std::string curve;  // "": the run's only one
  std::string name;   // of its run and curve
  Points points;
};

std::vector<Line> lines_of(const std::vector<TrainingRun>& runs, const std::string& title) {
  std::vector<Line> lines;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (const CurveGroup& group : runs[run].groups) {
      if (group.title != title) continue;
      for (const Curve& curve : group.curves)
        if (!curve.points.empty())
          lines.push_back({run, curve.name,
                           curve.name.empty() ? runs[run].name : runs[run].name + ", " + curve.name,
                           curve.points});
    }
  return lines;
}

// The names of the chart's curves; a curve's dashes are those of its place here.
std::vector<std::string> curves_of(const std::vector<Line>& lines) {
  std::vector<std::string> names;
  for (const Line& line : lines)
    if (std::find(names.begin(), names.end(), line.curve) == names.end()) names.push_back(line.curve);
  return names;
}

bool is_bad(const std::pair<double, double>& point) { return !std::isfinite(point.second); }

// No more points than can be seen. The last one stays, and each at which finite values end or begin.
Points thinned(const Points& points) {
  if (points.size() <= kMostPoints) return points;
  Points kept;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool due = i == chosen * (points.size() - 1) / (kMostPoints - 1);
    if (due) ++chosen;
    const bool turns = i > 0 && is_bad(points[i]) != is_bad(points[i - 1]);
    const bool seen =
        !kept.empty() && turns && kept.size() > 4 * kMostPoints;  // a curve of nothing but turns
    if (due || (turns && !seen)) kept.push_back(points[i]);
  }
  return kept;
}

// From values to places along one axis of a chart.
class Axis {
 public:
  Axis(double low, double high, bool logarithmic, double from, double to)
      : logarithmic_(logarithmic), from_(from), to_(to) {
    if (logarithmic) {
      const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
      const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
      const int every = (last - first + 6) / 7;
      for (int power = first; power < last + every; power += every) ticks_.push_back(std::pow(10., power));
    } else {
      ticks_ = ticks(low, high, 5);
    }
  }
  const std::vector<double>& marks() const { return ticks_; }
  double start() const { return from_; }
  double end() const { return to_; }
  double place(double value) const {
    const auto scaled = [&](double v) { return logarithmic_ ? std::log10(v) : v; };
    const double low = scaled(ticks_.front()), high = scaled(ticks_.back());
    return from_ + (std::min(scaled(value), high) - low) / (high - low) * (to_ - from_);
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

// x with all digits of a step.
std::string x_text(double x) { return fmt::format("{:.10g}", x); }

// Where the values of a curve stop being finite, and go on: a cross, and dots for as long as it lasts.
std::string bad_stretch(const Points& points, std::size_t first, std::size_t end, const Axis& across,
                        double y, const std::string& color) {
  const double from = across.place(points[first].first), to = across.place(points[end - 1].first);
  return fmt::format(
      "<path class=\"bad\" d=\"M{0:.1f} {1:.1f}l6 6m0-6l-6 6\" stroke=\"{2}\"/>"
      "<line class=\"lost\" x1=\"{3:.1f}\" x2=\"{4:.1f}\" y1=\"{5:.1f}\" y2=\"{5:.1f}\" stroke=\"{2}\"/>",
      from - 3, y - 3, color, from, to, y);
}

// bad_y: the height at which this line's crosses are.
std::string drawn(const Line& line, std::size_t dash, const Axis& across, const Axis& up, double bad_y) {
  const Points points = thinned(line.points);
  const std::string color = color_of(line.run);
  std::string shapes, values;
  for (std::size_t first = 0, end = 0; first < points.size(); first = end) {
    std::string places;
    for (; end < points.size() && is_bad(points[end]) == is_bad(points[first]); ++end)
      if (!is_bad(points[end]))
        places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", across.place(points[end].first),
                              up.place(points[end].second));
    if (places.empty()) shapes += bad_stretch(points, first, end, across, bad_y, color);
    else shapes += fmt::format("<polyline points=\"{}\" stroke=\"{}\"{}/>", places, color, dashes(dash));
    if (!places.empty() && (end - first == 1 || end == points.size()))
      shapes += marker(line.run, across.place(points[end - 1].first), up.place(points[end - 1].second));
  }
  for (const auto& [x, y] : points)
    values += fmt::format("{}{},{}", values.empty() ? "" : " ", x_text(x),
                          std::isinf(y) ? (y < 0 ? "-Infinity" : "Infinity") : fmt::format("{:.5g}", y));
  return fmt::format(
      "<g data-name=\"{0}\" data-color=\"{1}\" data-points=\"{2}\"><title>{0}: {3}</title>{4}</g>\n",
      escaped(line.name), color, values, number_text(line.points.back().second), shapes);
}

// What dashes mean, where a chart has several curves of a run, and crosses.
std::string caption(const std::vector<std::string>& curves, bool has_bad, double cut) {
  std::string text;
  if (curves.size() > 1)
    for (std::size_t i = 0; i < curves.size(); ++i)
      text += fmt::format(
          "<svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><polyline points=\"1,6 25,6\" "
          "stroke=\"currentColor\"{}/></svg>{} &nbsp; ",
          dashes(i), curves[i].empty() ? "training" : escaped(curves[i]));
  if (has_bad) text += "× NaN or infinite &nbsp; ";
  if (std::isfinite(cut)) text += "above " + number_text(cut) + " cut off";
  return text.empty() ? "" : "<figcaption>" + text + "</figcaption>";
}

// "step", or all that x is on one page.
std::string unit_of(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> units;
  for (const TrainingRun& run : runs)
    if (std::find(units.begin(), units.end(), run.x) == units.end()) units.push_back(run.x);
  return fmt::format("{}", fmt::join(units, " or "));
}

// The highest value that a chart of losses shows: what a training reaches before it is NaN would press the
// others to a line. Infinity: all are shown.
double highest_shown(const std::vector<Line>& lines, const std::string& title) {
  constexpr double kMostGrowth = 1e4;
  double highest = 0, start = 0;
  for (const Line& line : lines) {
    for (const auto& point : line.points)
      if (!is_bad(point)) highest = std::max(highest, point.second);
    if (!is_bad(line.points[0])) start = std::max(start, line.points[0].second);
  }
  const bool cuts = title.find("loss") != std::string::npos && start > 0 && highest > kMostGrowth * start;
  return cuts ? std::pow(10, std::ceil(std::log10(kMostGrowth * start)))
              : std::numeric_limits<double>::infinity();
}

// Of which all can be right.
bool is_share(const std::string& title) {
  constexpr std::array kShares = {"accuracy", "exact match", "R²", "AUC", "precision", "recall", "F1"};
  return std::find(kShares.begin(), kShares.end(), title) != kShares.end();
}

std::string chart(const std::vector<TrainingRun>& runs, const std::string& title) {
  const std::vector<Line> lines = lines_of(runs, title);
  if (lines.empty()) return "";
  const double cut = highest_shown(lines, title);
  Range x, y;
  for (const Line& line : lines)
    for (const auto& point : line.points) {
      x.take(point.first);
      if (!is_bad(point)) y.take(std::min(point.second, cut));
    }
  if (title == "samples/s" || title == "share of communication" || y.low > y.high) y.take(0);
  if (is_share(title) && y.low == y.high) y.take(0);
  if (is_share(title) || y.low > y.high || (y.low == 0 && y.high == 0)) y.take(1);
  const bool logarithmic = y.low > 0 && y.high / y.low > 100;
  const Axis across(x.low, x.high, false, kLeft, kWidth - kRight);
  const Axis up(y.low, y.high, logarithmic, kHeight - kBottom, kTop);
  const std::vector<std::string> curves = curves_of(lines);
  std::string svg = marks_of(across, up);
  int bad_lines = 0;
  for (const Line& line : lines) {
    const auto dash = std::find(curves.begin(), curves.end(), line.curve) - curves.begin();
    svg += drawn(line, static_cast<std::size_t>(dash), across, up, kTop - 10 + 8 * (bad_lines % 8));
    if (std::any_of(line.points.begin(), line.points.end(), is_bad)) ++bad_lines;
  }
  const std::string unit = unit_of(runs);
  return fmt::format(
      "<figure><h2>{0}{1}</h2>\n<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{0}\" "
      "data-unit=\"{7}\" data-x=\"{9} {10}\">\n{4}"
      "<text x=\"{5}\" y=\"{6}\" text-anchor=\"middle\">{7}</text>\n</svg>{8}</figure>\n",
      escaped(title), logarithmic ? " <small>logarithmic</small>" : "", kWidth, kHeight, svg,
      (kLeft + kWidth - kRight) / 2, kHeight - 5, unit, caption(curves, bad_lines > 0, cut),
      x_text(across.marks().front()), x_text(across.marks().back()));
}

std::vector<std::string> titles_of(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> titles;
  for (const TrainingRun& run : runs)
    for (const CurveGroup& group : run.groups)
      if (std::find(titles.begin(), titles.end(), group.title) == titles.end()) titles.push_back(group.title);
  std::stable_sort(titles.begin(), titles.end(), [](const std::string& a, const std::string& b) {
    return place_of_title(a) < place_of_title(b);
  });
  return titles;
}

// The last value, and where it is not finite, since when; else how many before it were not.
std::string last_value(const Line& line, const std::string& unit) {
  const Points& points = line.points;
  const auto bad = std::count_if(points.begin(), points.end(), is_bad);
  std::string last = number_text(points.back().second);
  if (bad == 0) return last;
  const auto finite = std::find_if_not(points.rbegin(), points.rend(), is_bad);
  if (finite == points.rbegin())
    return fmt::format("{}<small>{} of {} NaN or infinite</small>", last, bad, points.size());
  const std::string since = x_text(finite.base()->first);
  return fmt::format("<strong>{} since {} {}</strong><small>{}</small>", last, unit, since,
                     finite == points.rend() ? "never finite" : "before it " + number_text(finite->second));
}

std::string last_values(const std::vector<TrainingRun>& runs, const std::vector<std::string>& titles) {
  std::string head, rows;
  for (const std::string& title : titles) head += fmt::format("<th scope=\"col\">{}</th>", escaped(title));
  for (std::size_t run = 0; run < runs.size(); ++run) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(runs[run].name));
    for (const std::string& title : titles) {
      std::string text;
      for (const Line& line : lines_of(runs, title))
        if (line.run == run) text += (text.empty() ? "" : " / ") + last_value(line, runs[run].x);
      rows += fmt::format("<td>{}</td>", text.empty() ? "–" : text);
    }
    rows += "</tr>\n";
  }
  return fmt::format(
      "<div class=\"table\"><table><thead><tr><th scope=\"col\">last value</th>{}</tr></thead><tbody>\n{}"
      "</tbody></table></div>\n",
      head, rows);
}

// x of the run is said where it is not that of all.
std::string legend(const std::vector<TrainingRun>& runs) {
  std::string list = "<ul class=\"runs\">\n";
  const bool says_x = unit_of(runs) != runs[0].x || runs[0].x == "row";
  for (std::size_t run = 0; run < runs.size(); ++run)
    list += fmt::format(
        "<li><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><polyline points=\"1,5 25,5\" "
        "stroke=\"{}\" style=\"stroke-width:3\"/><g transform=\"translate(13 5) "
        "scale(1.6)\">{}</g></svg>{}{}</li>\n",
        color_of(run), marker(run, 0, 0), escaped(runs[run].name),
        says_x ? fmt::format(" <small>by {}</small>", runs[run].x) : "");
  return list + "</ul>\n";
}

std::string head_of(const PlotPageOptions& options) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n{}<title>kolo: "
      "trainings</title>\n{}</head><body><main>\n",
      options.refresh_seconds > 0
          ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", options.refresh_seconds)
          : "",
      kPlotStyle);
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

std::string plot_page(const std::vector<TrainingRun>& runs, const PlotPageOptions& options) {
  const std::vector<std::string> titles = titles_of(runs);
  std::string page = head_of(options);
  page += fmt::format("<h1>{}</h1>\n",
                      runs.size() == 1 ? escaped(runs[0].name) : fmt::format("{} trainings", runs.size()));
  if (!options.notes.empty()) {
    page += "<ul class=\"notes\">\n";
    for (const std::string& note : options.notes) page += fmt::format("<li>{}</li>\n", escaped(note));
    page += "</ul>\n";
  }
  if (!runs.empty()) {
    page += legend(runs) + "<div class=\"charts\">\n";
    for (const std::string& title : titles) page += chart(runs, title);
    page += "</div>\n" + last_values(runs, titles);
  }
  return page + "</main>\n" + kPlotScript + "</body></html>\n";
}

}  // namespace kolo::launcher

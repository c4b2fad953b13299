#include <kolo/models/data.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

// The pen strokes of the ten digits, in the ways people write them.
struct Point {
  double x, y;  // 0 … 100 from left and from top of the digit's box
};

// The pen's way: a smooth curve through the points; closed if the last point is the first.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

// The glyphs of `digit`, 0 … 9. A corner is where one stroke ends and the next begins.
const std::vector<Glyph>& glyphs(int digit) {
  static const std::array<std::vector<Glyph>, 10> table = {{
      {{{{50, 0}, {78, 14}, {86, 50}, {78, 86}, {50, 100}, {22, 86}, {14, 50}, {22, 14}, {50, 0}}},
       {{{60, 4}, {32, 8}, {14, 46}, {24, 90}, {54, 100}, {82, 70}, {84, 26}, {62, 2}, {40, 8}}}},

      {{{{50, 0}, {50, 50}, {50, 100}}},
       {{{30, 24}, {54, 0}}, {{54, 0}, {54, 50}, {54, 100}}},
       {{{30, 22}, {52, 0}}, {{52, 0}, {52, 100}}, {{28, 100}, {78, 100}}}},

      {{{{18, 24}, {32, 4}, {60, 0}, {80, 18}, {74, 44}, {48, 72}, {16, 100}},
        {{16, 100}, {50, 98}, {86, 100}}},
       {{{18, 22}, {42, 0}, {74, 8}, {76, 38}, {48, 78}, {22, 98}, {12, 86}, {28, 78}, {58, 92}, {90, 96}}}},

      {{{{20, 12}, {48, 0}, {76, 12}, {74, 36}, {44, 47}},
        {{44, 47}, {78, 58}, {84, 80}, {56, 100}, {16, 88}}},
       {{{18, 2}, {80, 2}}, {{80, 2}, {44, 42}}, {{44, 42}, {78, 54}, {84, 78}, {54, 100}, {16, 88}}}},

      {{{{24, 2}, {18, 30}, {16, 58}}, {{16, 58}, {50, 56}, {86, 54}}, {{72, 4}, {70, 50}, {66, 100}}},
       {{{64, 0}, {12, 66}}, {{12, 66}, {90, 66}}, {{64, 0}, {64, 100}}}},

      {{{{80, 2}, {28, 2}},
        {{28, 2}, {22, 44}},
        {{22, 44}, {50, 36}, {78, 48}, {82, 74}, {58, 98}, {16, 90}}},
       {{{82, 2}, {44, 4}, {26, 20}, {32, 42}, {62, 50}, {80, 70}, {62, 96}, {18, 94}}}},

      {{{{72, 2}, {40, 20}, {20, 56}, {24, 86}, {50, 100}, {78, 86}, {78, 62}, {52, 50}, {24, 68}}},
       {{{56, 0}, {30, 30}, {18, 66}, {34, 96}, {64, 98}, {78, 76}, {62, 56}, {36, 60}, {22, 78}}}},

      {{{{14, 4}, {50, 2}, {84, 4}}, {{84, 4}, {62, 42}, {44, 100}}},
       {{{14, 4}, {84, 4}}, {{84, 4}, {56, 56}, {42, 100}}, {{32, 52}, {78, 50}}},
       {{{16, 20}, {18, 4}}, {{18, 4}, {82, 2}}, {{82, 2}, {66, 40}, {56, 100}}}},

      {{{{52, 48},
         {24, 30},
         {30, 6},
         {54, 0},
         {76, 12},
         {74, 30},
         {48, 50},
         {20, 72},
         {24, 94},
         {50, 100},
         {78, 92},
         {80, 70},
         {52, 48}}},
       {{{50, 2}, {72, 12}, {72, 36}, {50, 48}, {28, 36}, {28, 12}, {50, 2}},
        {{50, 48}, {80, 60}, {80, 88}, {50, 100}, {20, 88}, {20, 60}, {50, 48}}}},

      {{{{76, 20}, {54, 2}, {26, 10}, {20, 36}, {42, 52}, {68, 44}, {76, 20}},
        {{76, 20}, {74, 60}, {66, 100}}},
       {{{74, 14}, {48, 0}, {22, 18}, {28, 46}, {58, 48}, {76, 20}},
        {{76, 20}, {80, 60}, {62, 94}, {28, 98}}}},
  }};
  return table.at(static_cast<std::size_t>(digit));
}

// Arithmetic here is +, −, ×, ÷, sqrt and rounding of doubles alone, compiled without contraction into fused
// operations: IEEE 754 rounds each of them in one way, so the pixels are the same on every machine. sin, cos
// and exp are not.

constexpr int kSide = 28;
constexpr std::uint64_t kTestIndex = std::uint64_t{1} << 32;  // beyond every training index

// How one writer draws one digit: box (0 … 100) → canvas (0 … 28), bent, slanted, turned, moved.
struct Hand {
  explicit Hand(CounterRandom& random)
      : width(random.uniform(0.105, 0.21)),
        height(random.uniform(0.17, 0.215)),
        slant(random.uniform(-0.2, 0.45)),
        bend_x(random.uniform(-0.0025, 0.0025)),
        bend_y(random.uniform(-0.0025, 0.0025)),
        half_turn(random.uniform(-0.14, 0.14)),
        centre{kSide / 2.0 + random.uniform(-1.9, 1.9), kSide / 2.0 + random.uniform(-1.9, 1.9)},
        half_pen(random.uniform(0.55, 1.75)),
        ink(random.uniform(0.75, 1.0)),
        grain(random.uniform(0.0, 0.3)),
        dirt(random.uniform(0.0, 0.12)) {}

  Point to_canvas(Point p) const {
    double x = p.x - 50, y = p.y - 50;
    const double bent_x = x + bend_x * y * y, bent_y = y + bend_y * x * x;
    x = width * (bent_x - slant * bent_y);
    y = height * bent_y;
    // The rotation by θ from tan(θ/2), which needs no trigonometric function.
    const double scale = 1 + half_turn * half_turn;
    const double cosine = (1 - half_turn * half_turn) / scale, sine = 2 * half_turn / scale;
    return {centre.x + cosine * x - sine * y, centre.y + sine * x + cosine * y};
  }

  double width, height;   // canvas pixels per box unit
  double slant;           // tangent of the letter's lean
  double bend_x, bend_y;  // curvature that straight strokes get
  double half_turn;       // tan(θ/2)
  Point centre;
  double half_pen;     // half the stroke's thickness, pixels
  double ink;          // darkness of a full stroke
  double grain, dirt;  // how much of the ink is missing, and how much lies beside the strokes, at most
};

// Squared distance from every pixel to the nearest stroke, as far as a pen reaches.
class Canvas {
 public:
  explicit Canvas(double reach) : reach_(reach) { squared_.fill(reach * reach); }

  void line(Point a, Point b) {
    const int left = clamp(std::min(a.x, b.x) - reach_), right = clamp(std::max(a.x, b.x) + reach_);
    const int top = clamp(std::min(a.y, b.y) - reach_), bottom = clamp(std::max(a.y, b.y) + reach_);
    for (int row = top; row <= bottom; ++row) {
      for (int column = left; column <= right; ++column) {
        double& nearest = squared_[row * kSide + column];
        nearest = std::min(nearest, squared_distance({column + 0.5, row + 0.5}, a, b));
      }
    }
  }
  double distance(int pixel) const { return std::sqrt(squared_[pixel]); }

 private:
  static int clamp(double coordinate) { return std::clamp(static_cast<int>(coordinate), 0, kSide - 1); }

  static double squared_distance(Point p, Point a, Point b) {
    const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    const double along =
        length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
    const double x = p.x - (a.x + along * dx), y = p.y - (a.y + along * dy);
    return x * x + y * y;
  }

  double reach_;
  std::array<double, kSide * kSide> squared_;
};

// Between p1 and p2 of a uniform Catmull-Rom spline, t in [0, 1].
double spline(double p0, double p1, double p2, double p3, double t) {
  return p1 + 0.5 * t * (p2 - p0 + t * (2 * p0 - 5 * p1 + 4 * p2 - p3 + t * (3 * (p1 - p2) + p3 - p0)));
}

void draw_stroke(const Stroke& stroke, Canvas& canvas) {
  constexpr int kPieces = 8;
  const int last = static_cast<int>(stroke.size()) - 1;
  const bool closed = stroke.front().x == stroke.back().x && stroke.front().y == stroke.back().y;
  for (int i = 0; i < last; ++i) {
    const Point p0 = i > 0 ? stroke[i - 1] : stroke[closed ? last - 1 : 0], p1 = stroke[i],
                p2 = stroke[i + 1];
    const Point p3 = i + 2 <= last ? stroke[i + 2] : stroke[closed ? 1 : last];
    Point from = p1;
    for (int piece = 1; piece <= kPieces; ++piece) {
      const double t = static_cast<double>(piece) / kPieces;
      const Point to{spline(p0.x, p1.x, p2.x, p3.x, t), spline(p0.y, p1.y, p2.y, p3.y, t)};
      canvas.line(from, to);
      from = to;
    }
  }
}

// Points that strokes share (a corner, the end of a closed stroke) move together: the shift follows from the
// place.
Glyph written_by(const Hand& hand, const Glyph& glyph, CounterRandom& random) {
  constexpr double kJitter = 6.5;
  std::vector<std::pair<Point, Point>> moved;
  Glyph written = glyph;
  for (auto& stroke : written) {
    for (auto& point : stroke) {
      const auto known = std::find_if(moved.begin(), moved.end(), [&](const auto& pair) {
        return pair.first.x == point.x && pair.first.y == point.y;
      });
      if (known != moved.end()) {
        point = known->second;
        continue;
      }
      const Point from = point;
      const double x = from.x + random.uniform(-kJitter, kJitter);
      point = hand.to_canvas({x, from.y + random.uniform(-kJitter, kJitter)});
      moved.emplace_back(from, point);
    }
  }
  return written;
}

}  // namespace

int generated_label(std::uint64_t seed, std::uint64_t index) {
  std::array<int, 10> digits = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CounterRandom random(seed, RandomPurpose::digit_labels, index / 10);
  for (std::size_t i = 9; i > 0; --i) std::swap(digits[i], digits[random.below(i + 1)]);
  return digits[index % 10];
}

void draw_digit(int digit, std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t, 784> pixels) {
  constexpr double kEdge = 1.3;  // pixels from full ink to none
  CounterRandom random(seed, RandomPurpose::digit_shape, index);
  const auto& ways = glyphs(digit);
  const Glyph& glyph = ways[random.below(ways.size())];
  const Hand hand(random);
  Canvas canvas(hand.half_pen + kEdge);
  for (const auto& stroke : written_by(hand, glyph, random)) draw_stroke(stroke, canvas);
  CounterRandom noise(seed, RandomPurpose::digit_noise, index);
  for (int pixel = 0; pixel < kSide * kSide; ++pixel) {
    const double cover = std::clamp((hand.half_pen - canvas.distance(pixel)) / kEdge + 0.5, 0.0, 1.0);
    const double stroke = cover * hand.ink * (1 - noise.uniform(0, hand.grain));
    const double speck = noise.uniform(0, 1);
    const double dirt = hand.dirt * (speck > 0.7 ? speck : 0);  // most of the paper stays clean
    pixels[pixel] = static_cast<std::uint8_t>(std::lround(255 * std::min(1.0, stroke + dirt)));
  }
}

Dataset generated_digits(std::uint64_t seed, std::uint64_t first, std::int64_t count) {
  if (count < 1)
    throw InvalidArgumentError("{} generated digits were asked for; at least 1 is needed", count);
  Dataset dataset{Tensor(DType::u8, {count, kSide, kSide}), Tensor(DType::u8, {count}), "generated digits"};
  std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i, pixels += kSide * kSide) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    const int label = generated_label(seed, index);
    dataset.labels.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(label);
    draw_digit(label, seed, index, std::span<std::uint8_t, 784>(pixels, 784));
  }
  return dataset;
}

Dataset generated_digits(Split split) {
  return split == Split::train ? generated_digits(kGeneratedDigitsSeed, 0, kGeneratedTrainDigits)
                               : generated_digits(kGeneratedDigitsSeed, kTestIndex, kGeneratedTestDigits);
}

}  // namespace kolo::models

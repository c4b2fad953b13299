#include <kolo/core/ops/summaries.h>

#include <algorithm>
#include <cctype>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

void gives_a_string(ShapeContext& c) { c.set_output(0, Shape()); }

// Stateful: two of one value are not one, since their names, which are their tags, differ.
OpSchema summary_op(const char* name) {
  return OpSchema(name)
      .output("summary", DType::string)
      .cpu_only()
      .stateful()
      .no_gradient()
      .shape(gives_a_string);
}

OpSchema tagged_op(const char* name) { return summary_op(name).attr("family", ""); }

const std::vector<DType>& numbers() {
  static const std::vector<DType> types = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                           DType::u8,  DType::i8,  DType::f16, DType::bf16};
  return types;
}

const RegisterOp scalar_op(tagged_op("ScalarSummary").input("value", numbers()).shape([](ShapeContext& c) {
  if (c.input(0).is_fully_known() && c.input(0).elements() != 1)
    throw InvalidArgumentError("summary::scalar: the value is {}; one number would be right", c.input(0));
  gives_a_string(c);
}));

const RegisterOp histogram_op(tagged_op("HistogramSummary").input("values", numbers()));

const RegisterOp image_op(tagged_op("ImageSummary")
                              .input("images", {DType::u8, DType::f32, DType::f64, DType::f16, DType::bf16})
                              .attr("max_images", 3)
                              .shape([](ShapeContext& c) {
                                const Shape& shape = c.input(0);
                                const bool fits =
                                    !shape.has_rank() ||
                                    (shape.rank() == 4 && (shape.dim(3) == -1 || shape.dim(3) == 1 ||
                                                           shape.dim(3) == 3 || shape.dim(3) == 4));
                                if (!fits)
                                  throw InvalidArgumentError(
                                      "Tensor must be 4-D with last dim 1, 3, or 4, not {}", shape);
                                gives_a_string(c);
                              }));

const RegisterOp text_op(tagged_op("TextSummary").input("text", {DType::string}));

const RegisterOp merge_op(summary_op("MergeSummary").variadic("summaries", {DType::string}));

// As TensorFlow's clean_tag.
std::string cleaned(const std::string& name) {
  std::string clean = name;
  for (char& c : clean)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string("-/_.").find(c) == std::string::npos)
      c = '_';
  clean.erase(0, clean.find_first_not_of('/'));
  if (clean != name) log_info("Summary name {} is illegal; using {} instead.", name, clean);
  return clean;
}

Output add_summary(const Scope& s, const char* op, const std::string& name, Output input, AttrMap attrs,
                   const summary::Options& options) {
  const std::string clean = cleaned(name);
  const std::string wished = options.family.empty() ? clean : cleaned(options.family) + '/' + clean;
  if (!options.family.empty()) attrs.emplace("family", cleaned(options.family));
  const Operation added = s.add(op, {input}, std::move(attrs), wished);
  for (const std::string& collection : options.collections)
    s.graph().add_to_collection(collection, *added.node);
  return added;
}

}  // namespace

namespace summary {

Output scalar(const Scope& s, const std::string& name, Output value, const Options& options) {
  return add_summary(s, "ScalarSummary", name, value, {}, options);
}

Output histogram(const Scope& s, const std::string& name, Output values, const Options& options) {
  return add_summary(s, "HistogramSummary", name, values, {}, options);
}

Output image(const Scope& s, const std::string& name, Output images, std::int64_t max_outputs,
             const Options& options) {
  if (max_outputs < 1)
    throw InvalidArgumentError("summary::image: max_outputs is {}; it must be above 0", max_outputs);
  return add_summary(s, "ImageSummary", name, images, {{"max_images", max_outputs}}, options);
}

Output text(const Scope& s, const std::string& name, Output text, const Options& options) {
  if (text.dtype() != DType::string)
    throw InvalidArgumentError("Expected tensor {} to have dtype string, got {}", text.name(), text.dtype());
  return add_summary(s, "TextSummary", name, text, {}, options);
}

Output merge(const Scope& s, const Outputs& summaries) {
  if (summaries.empty()) throw InvalidArgumentError("summary::merge: there are no summaries to merge");
  return s.name_scope("Merge").add("MergeSummary", summaries);
}

Output merge_all(const Scope& s, const std::string& collection) {
  Outputs summaries;
  for (const Node* node : s.graph().collection(collection)) summaries.push_back({node, 0});
  return summaries.empty() ? Output() : merge(s, summaries);
}

}  // namespace summary
}  // namespace kolo

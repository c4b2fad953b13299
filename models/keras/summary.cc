// The table of a model's layers, as Keras lays it out.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <kolo/models/keras/model_internal.h>

namespace kolo::keras {
namespace detail {
namespace {

struct Layout {
  std::size_t width;
  std::vector<std::size_t> ends;  // of the columns
};
const Layout kLinear{65, {29, 55, 65}};
const Layout kConnected{98, {32, 53, 65, 98}};

// Each field is cut to its column, one space before the next.
std::string row(const Layout& layout, const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < layout.ends.size(); ++i) {
    if (i > 0) line.back() = ' ';
    line += fields[i];
    line.resize(layout.ends[i], ' ');
  }
  return line + '\n';
}

std::string rule(const Layout& layout, char of) { return std::string(layout.width, of) + '\n'; }

std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::vector<const ModelCall*> calls_of(const ModelImpl& model, const LayerImpl* layer) {
  std::vector<const ModelCall*> calls;
  for (const ModelCall& call : model.model_calls())
    if (call.layer == layer) calls.push_back(&call);
  return calls;
}

bool is_linear(const ModelImpl& model) {
  if (model.is_sequential()) return true;
  std::map<int, int> calls_at;
  for (const ModelCall& call : model.model_calls())
    if (++calls_at[call.depth] > 1 ||
        call.layer->calls()[static_cast<std::size_t>(call.call)].inputs.size() > 1)
      return false;
  return std::all_of(model.layers().begin(), model.layers().end(),
                     [&](const LayerImpl* layer) { return calls_of(model, layer).size() <= 1; });
}

std::string shapes_text(const Outputs& outputs) {
  if (outputs.size() == 1) return shape_text(outputs[0].shape());
  std::string text;
  for (const Output& output : outputs) text += (text.empty() ? "" : ", ") + shape_text(output.shape());
  return fmt::format("[{}]", text);
}

std::string output_shape_text(const LayerImpl& layer) {
  const std::string first = shapes_text(layer.calls().front().outputs);
  for (const CallRecord& call : layer.calls())
    if (shapes_text(call.outputs) != first) return "multiple";
  return first;
}

std::vector<std::string> connections(const ModelImpl& model, const LayerImpl* layer) {
  std::vector<std::string> texts;
  for (const ModelCall* call : calls_of(model, layer))
    for (const KerasTensor& input : layer->calls()[static_cast<std::size_t>(call->call)].inputs)
      texts.push_back(
          fmt::format("{}[{}][{}]", input.layer()->name(), model.call_in_model(input), input.index()));
  if (texts.empty()) texts.emplace_back();
  return texts;
}

std::int64_t elements(const std::vector<const Weight*>& weights) {
  std::int64_t count = 0;
  for (const Weight* weight : weights) count += weight->variable.shape().elements();
  return count;
}

std::string rows(const Layout& layout, const ModelImpl& model, const LayerImpl* layer) {
  const auto from = connections(model, layer);
  std::string text = row(layout, {layer->name() + " (" + layer->class_name() + ')', output_shape_text(*layer),
                                  std::to_string(elements(layer->weights())), from[0]});
  if (layout.ends.size() < 4) return text;
  for (std::size_t i = 1; i < from.size(); ++i) text += row(layout, {"", "", "", from[i]});
  return text;
}

}  // namespace
}  // namespace detail

std::string Model::summary() const {
  using namespace detail;
  const ModelImpl& of = model();
  of.require_built();
  const Layout& layout = is_linear(of) ? kLinear : kConnected;
  std::string text = rule(layout, '_');
  text += row(layout, {"Layer (type)", "Output Shape", "Param #", "Connected to"});
  text += rule(layout, '=');
  for (std::size_t i = 0; i < of.layers().size(); ++i) {
    text += rows(layout, of, of.layers()[i]);
    text += rule(layout, i + 1 < of.layers().size() ? '_' : '=');
  }
  const std::int64_t all = elements(of.weights()), trainable = elements(of.trainable_weights());
  text += fmt::format("Total params: {}\nTrainable params: {}\nNon-trainable params: {}\n", with_commas(all),
                      with_commas(trainable), with_commas(all - trainable));
  return text + rule(layout, '_');
}

}  // namespace kolo::keras

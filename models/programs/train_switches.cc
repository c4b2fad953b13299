#include <kolo/models/programs/train_switches.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options.hpp>

#include <string_view>

#include <kolo/models/models.h>
#include <kolo/models/programs/best_value.h>
#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/losses.h>
#include <kolo/models/samples.h>
#include <kolo/optimizer/registry.h>

namespace kolo::models {

namespace po = boost::program_options;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

namespace {

struct Switch {
  const char* name;
  const char* value;  // what --help calls it; "": a switch without one
  const char* help;   // with the names of filled_in()
};

constexpr Switch kSwitches[] = {
    {"model", "NAME", "what to train: {models}"},
    {"layers", "N", "of gpt and lstm (default gpt 4, lstm 2)"},
    {"width", "N", "of gpt and lstm: numbers that stand for a token (default 256)"},
    {"heads", "N", "of gpt's attention, which divide the width (default 4)"},
    {"context", "N", "tokens that gpt or lstm sees at once (default gpt 128, lstm 64)"},
    {"data", "PATH",
     "folder: MNIST's IDX files, plain or .gz; CIFAR-10's binary version; x_train.npy, y_train.npy "
     "and the same for test; train/CLASS/*.jpg|png|webp and test/; pictures and a .csv of their "
     "names and classes; train.csv and test.csv, or other tables, which are one. File: a .csv or "
     ".tsv table, or a text for gpt and lstm. \"generated\" draws digits (default: "
     "$KOLO_DATA_DIR/mnist, else data/mnist)"},
    {"target", "COLUMN",
     "of a table: the label's column, by name or number from 1 on, or several with commas between, "
     "a name with a comma in quotes (default: label, class, target, species or y, else the last)"},
    {"ignore", "COLUMNS", "of a table: columns to leave out, with commas between"},
    {"missing", "WHAT",
     "of a table: an empty cell becomes its column's mean or zero, or its line is left out: "
     "mean|zero|drop"},
    {"loss", "NAME",
     "{losses}: softmax of classes; mse, mae and huber of numbers; bce of several labels a sample "
     "(default: mse where labels have fractions, bce where each is 0 or 1 or words have | between "
     "them, else softmax)"},
    {"skip-damaged", "",
     "decode all pictures before step 1, and leave out and count those that are damaged (default: "
     "check their headers, and end at a damaged one)"},
    {"augment", "LIST",
     "change training images at random, by a list with commas between: "
     "usual|crop[:AREA]|rotate[:DEGREES]|shift[:PIXELS]|flip|color[:X]|brightness[:X]|contrast[:X]|"
     "saturation[:X]; "
     "usual is shift, and flip of those in colour (defaults: AREA 0.08, DEGREES 15, PIXELS 4, X 0.2)"},
    {"normalize", "",
     "subtract from each channel (each column of a table) its mean and divide by its deviation, as "
     "found in the training samples, and the same of numbers to find; kept in checkpoints"},
    {"optimizer", "NAME", "{optimizers} (default adam)"},
    {"learning-rate", "X", "{rates}"},
    {"momentum", "X", "of momentum, nesterov and lars (default 0.9)"},
    {"weight-decay", "X",
     "of adamw, lamb, lars and lion their own; for the others X times the weights is added to the "
     "gradient"},
    {"schedule", "NAME",
     "of the learning rate over all steps: constant|linear|cosine to 0|step, a tenth after 1/2 and "
     "after 3/4 of them (default constant)"},
    {"warmup", "N", "steps in which the rate grows from 0 to what it is (default 0)"},
    {"clip-norm", "X", "gradients together are no longer than this"},
    {"average-decay", "X",
     "evaluate with moving averages of the variables, which keep X of their old value in a step; "
     "they are kept in checkpoints"},
    {"backward-passes", "N",
     "batches whose gradients are averaged on a rank before they are reduced: one step (default 1)"},
    {"compression", "NAME",
     "how gradients travel: none|fp16|bf16|powersgd[:RANK]|topk[:RATIO] (default none)"},
    {"precision", "NAME",
     "what matrix products and convolutions are computed in, where weights and gradients stay f32: "
     "automatic|f32|tf32|bf16. automatic: convolutions on GPUs in tf32, all else in f32; tf32: on "
     "GPUs; bf16: on CPUs (default automatic)"},
    {"sharded", "", "each rank keeps a part of the optimizer's state (ZeRO stage 1)"},
    {"batch-size", "N", "samples per rank and backward pass (default 64)"},
    {"global-batch", "N",
     "instead: samples of a step, which the ranks and their backward passes share out, whatever "
     "their number"},
    {"epoch-end", "WHAT",
     "the last samples of an epoch, which are too few for a step, are left out or fill a step of "
     "their own: drop|fill (default drop)"},
    {"scale-rate", "RULE",
     "a training that goes on with another global batch multiplies its rate by new size / old size "
     "or the root of it: none|linear|sqrt (default none)"},
    {"rescale-steps", "N", "of --scale-rate: steps in which the rate gets there (default 100)"},
    {"steps", "N", "steps in all, counted from step 0: a restarted run does what is missing"},
    {"epochs", "N",
     "instead: passes over the training samples in all, counted by the samples that were taken, whatever "
     "--batch-size and the number of ranks were (default 10)"},
    {"checkpoint-dir", "DIR",
     "restore from and save to this folder (rank 0 alone uses it); what it was trained with, its "
     "config.json adds to the command line. In a batch job {job} in the name is its number, {array} "
     "its task of a job array"},
    {"save-steps", "N", "save every N steps (default: every 600 s); always at the end"},
    {"init-from", "PATH",
     "where there is no checkpoint yet: take the first weights, and nothing else, from a folder of "
     "checkpoints, a checkpoint .../model.ckpt-N or a safetensors file"},
    {"init-names", "FILE",
     "JSON object for --init-from: the tensor's name for each variable that is called otherwise "
     "there, with .T behind it for a matrix's transpose; \"\" for one that begins anew"},
    {"no-NAME", "", "a training that goes on without a switch of its folder, as in --no-augment: {ended}"},
    {"keep-going", "", "train on with a loss that is NaN or infinite (default: stop, exit code 1)"},
    {"check-drift", "N",
     "compare the weights of the ranks every N steps, and stop where they differ; 0: never (default "
     "KOLO_CHECK_DRIFT, else 100)"},
    {"keep", "N", "the newest N checkpoints, 0: all of them (default 5)"},
    {"validate-every", "N", "evaluate the test samples every N steps, too"},
    {"early-stopping", "METRIC:N",
     "end the training after N of these evaluations without a better one, as in test_loss:5; "
     "{metrics}"},
    {"keep-best", "METRIC",
     "keep the weights of the best of these evaluations in the folder best of --checkpoint-dir, for "
     "--evaluate, --predict and --init-from; {metrics}"},
    {"log-steps", "N",
     "tell the progress every N steps (default: each second on a terminal and in the logs, each 10 "
     "s in plain lines)"},
    {"seed", "N", "of first weights, of the order of samples and of what --prompt writes (default 1)"},
    {"device", "WHERE", "auto|cpu|gpu (default auto)"},
    {"threads", "T", "threads that compute (default OMP_NUM_THREADS, else cores / ranks of the host)"},
    {"log-dir", "DIR",
     "write metrics.jsonl there: a line of the run's parameters, and the lines that --json prints. "
     "{job} and {array} as in --checkpoint-dir"},
    {"tensorboard", "DIR",
     "write TensorBoard's event files there: loss, rates, evaluations, the graph and histograms of "
     "the weights"},
    {"histogram-steps", "N", "of --tensorboard: steps between two histograms, 0: none (default 500)"},
    {"trace", "FILE", "write a Chrome/Perfetto trace of this run's third step (its last, if it has fewer)"},
    {"profile", "N",
     "measure N steps from this run's third on, and print which ops and layers their time goes to, "
     "and the three nodes furthest from what the processor can do"},
    {"evaluate", "", "no training: restore the model from --checkpoint-dir and evaluate the test samples"},
    {"predict", "PATH...",
     "no training: name, class and its share for each picture, folder of pictures, row of a .csv "
     "table, sample of a .npy array or image of an …idx3-ubyte file or of CIFAR-10's .bin, in their order; - "
     "reads names "
     "from standard input (under kolorun: --stdin). With --skip-damaged pictures that cannot be "
     "decoded are left out and counted"},
    {"top", "K",
     "of --predict: the K classes with the largest shares, or the K likeliest labels (default: 1 "
     "class, all labels)"},
    {"output", "FILE", "of --predict: write a .csv or .jsonl file (default: stdout)"},
    {"prompt", "TEXT", "no training: gpt and lstm continue this text"},
    {"length", "N", "of --prompt: characters to write, in bytes (default 200)"},
    {"temperature", "X",
     "of --prompt: below 1 likely characters become likelier; 0: always the likeliest (default 1)"},
    {"json", "", "one JSON object a line on stdout"},
    {"help,h", "", "this text"},
    {"version", "", "name and version"},
};

// "of adadelta 1, adagrad 0.01, …".
std::string default_rates() {
  std::string text;
  for (const std::string& name : registered_optimizers())
    text += fmt::format("{} {} {:g}", text.empty() ? "(default:" : ",", name,
                        optimizer_traits(name).learning_rate);
  return text + ")";
}

std::string filled_in(const char* help) {
  using fmt::arg;
  return fmt::format(fmt::runtime(help), arg("models", joined(registered_models())),
                     arg("optimizers", joined(registered_optimizers())), arg("losses", loss_names("|", "|")),
                     arg("metrics", evaluation_metrics()), arg("rates", default_rates()),
                     arg("ended", fmt::format("{}", fmt::join(kSwitchesThatEnd, ", "))), arg("job", "{job}"),
                     arg("array", "{array}"));
}

// Values are taken as text and parsed strictly by ourselves: "12x", "nan" and "-0" are no counts.
const po::value_semantic* value_of(const Switch& of) {
  if (*of.value == '\0') return po::bool_switch();
  const std::string_view name = of.name;
  if (name == "predict")
    return po::value<std::vector<std::string>>()->multitoken()->zero_tokens()->value_name(of.value);
  auto* const text = po::value<std::string>()->value_name(of.value);
  return name == "augment" ? text->implicit_value(kUsualAugmentation) : text;
}

}  // namespace

po::options_description described_options() {
  po::options_description all("Options");
  for (const Switch& of : kSwitches) all.add_options()(of.name, value_of(of), filled_in(of.help).c_str());
  return all;
}

std::optional<std::string> given(const po::variables_map& values, const char* name) {
  return values.count(name) > 0 ? std::optional(values[name].as<std::string>()) : std::nullopt;
}

bool is_given(const po::variables_map& values, const char* name) {
  return values.count(name) > 0 && !values[name].defaulted();
}

}  // namespace kolo::models

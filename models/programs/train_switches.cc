#include <kolo/models/programs/train_switches.h>

#include <fmt/format.h>
#include <boost/program_options.hpp>

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

// "of adadelta 1, adagrad 0.01, …".
std::string default_rates() {
  std::string text;
  for (const std::string& name : registered_optimizers())
    text += fmt::format("{} {} {:g}", text.empty() ? "(default:" : ",", name,
                        optimizer_traits(name).learning_rate);
  return text + ")";
}

}  // namespace

po::options_description described_options() {
  po::options_description all("Options");
  // Values are taken as text and parsed strictly by ourselves: "12x", "nan" and "-0" are no counts.
  const auto text = [] { return po::value<std::string>(); };
  all.add_options()("model", text()->value_name("NAME"),
                    fmt::format("what to train: {}", joined(registered_models())).c_str())(
      "layers", text()->value_name("N"), "of gpt and lstm (default gpt 4, lstm 2)")(
      "width", text()->value_name("N"), "of gpt and lstm: numbers that stand for a token (default 256)")(
      "heads", text()->value_name("N"), "of gpt's attention, which divide the width (default 4)")(
      "context", text()->value_name("N"), "tokens that gpt or lstm sees at once (default gpt 128, lstm 64)")(
      "data", text()->value_name("PATH"),
      "folder: MNIST's IDX files, plain or .gz; CIFAR-10's binary version; x_train.npy, y_train.npy and the "
      "same for test; train/CLASS/*.jpg|png|webp and test/; pictures and a .csv of their names and classes; "
      "train.csv and test.csv, or other tables, which are one. File: a .csv or .tsv table, or a text for gpt "
      "and lstm. \"generated\" draws digits (default: $KOLO_DATA_DIR/mnist, else data/mnist)")(
      "target", text()->value_name("COLUMN"),
      "of a table: the label's column, by name or number from 1 on, or several with commas between, a name "
      "with a "
      "comma in quotes (default: "
      "label, class, target, species or y, else the last)")(
      "ignore", text()->value_name("COLUMNS"), "of a table: columns to leave out, with commas between")(
      "missing", text()->value_name("WHAT"),
      "of a table: an empty cell becomes its column's mean or zero, or its line is left out: mean|zero|drop")(
      "loss", text()->value_name("NAME"),
      fmt::format(
          "{}: softmax of classes; mse, mae and huber of numbers; bce of several labels a sample "
          "(default: mse where labels have fractions, bce where each is 0 or 1 or words have | between "
          "them, else softmax)",
          loss_names("|", "|"))
          .c_str())("skip-damaged", po::bool_switch(),
                    "decode all pictures before step 1, and leave out and count those that are damaged "
                    "(default: check their "
                    "headers, and end at a damaged one)")(
      "augment", text()->implicit_value(kUsualAugmentation)->value_name("LIST"),
      "change training images at random, by a list with commas between: usual|crop[:AREA]|rotate[:DEGREES]|"
      "shift[:PIXELS]|flip|color[:X]|brightness[:X]|contrast[:X]|saturation[:X]; usual is shift, and flip of "
      "those in "
      "colour (defaults: AREA 0.08, DEGREES 15, PIXELS 4, X 0.2)")(
      "normalize", po::bool_switch(),
      "subtract from each channel (each column of a table) its mean and divide by its deviation, as found in "
      "the training samples, and the same of numbers to find; kept in checkpoints")(
      "optimizer", text()->value_name("NAME"),
      fmt::format("{} (default adam)", joined(registered_optimizers())).c_str())(
      "learning-rate", text()->value_name("X"), default_rates().c_str())(
      "momentum", text()->value_name("X"), "of momentum, nesterov and lars (default 0.9)")(
      "weight-decay", text()->value_name("X"),
      "of adamw, lamb, lars and lion their own; for the others X times the weights is added to the gradient")(
      "schedule", text()->value_name("NAME"),
      "of the learning rate over all steps: constant|linear|cosine to 0|step, a tenth after 1/2 and after "
      "3/4 of them (default constant)")("warmup", text()->value_name("N"),
                                        "steps in which the rate grows from 0 to what it is (default 0)")(
      "clip-norm", text()->value_name("X"), "gradients together are no longer than this")(
      "average-decay", text()->value_name("X"),
      "evaluate with moving averages of the variables, which keep X of their old value in a step; they are "
      "kept in checkpoints")(
      "backward-passes", text()->value_name("N"),
      "batches whose gradients are averaged on a rank before they are reduced: one step (default 1)")(
      "compression", text()->value_name("NAME"),
      "how gradients travel: none|fp16|bf16|powersgd[:RANK]|topk[:RATIO] (default none)")(
      "precision", text()->value_name("NAME"),
      "what matrix products and convolutions are computed in, where weights and gradients stay f32: "
      "automatic|f32|tf32|bf16. automatic: convolutions on GPUs in tf32, all else in f32; tf32: on GPUs; "
      "bf16: "
      "on CPUs (default automatic)")("sharded", po::bool_switch(),
                                     "each rank keeps a part of the optimizer's state (ZeRO stage 1)")(
      "batch-size", text()->value_name("N"), "samples per rank and backward pass (default 64)")(
      "global-batch", text()->value_name("N"),
      "instead: samples of a step, which the ranks and their backward passes share out, whatever their "
      "number")(
      "epoch-end", text()->value_name("WHAT"),
      "the last samples of an epoch, which are too few for a step, are left out or fill a step of their own: "
      "drop|fill (default drop)")(
      "scale-rate", text()->value_name("RULE"),
      "a training that goes on with another global batch multiplies its rate by new size / old size or the "
      "root of it: none|linear|sqrt (default none)")(
      "rescale-steps", text()->value_name("N"),
      "of --scale-rate: steps in which the rate gets there (default 100)")(
      "steps", text()->value_name("N"),
      "steps in all, counted from step 0: a restarted run does what is missing")(
      "epochs", text()->value_name("N"),
      "instead: passes over the training samples in all, counted by the samples that were taken, whatever "
      "--batch-size and the number of ranks were (default 10)")(
      "checkpoint-dir", text()->value_name("DIR"),
      "restore from and save to this folder (rank 0 alone uses it); what it was trained with, its "
      "config.json "
      "adds to the command line. In a batch job {job} in the name is its number, {array} its task of a job "
      "array")("save-steps", text()->value_name("N"),
               "save every N steps (default: every 600 s); always at the end")(
      "init-from", text()->value_name("PATH"),
      "where there is no checkpoint yet: take the first weights, and nothing else, from a folder of "
      "checkpoints, a checkpoint .../model.ckpt-N or a safetensors file")(
      "init-names", text()->value_name("FILE"),
      "JSON object for --init-from: the tensor's name for each variable that is called otherwise there, with "
      ".T behind it for a matrix's transpose; \"\" for one that begins anew")(
      "no-NAME", po::bool_switch(),
      fmt::format("a training that goes on without a switch of its folder, as in --no-augment: {}",
                  fmt::join(kSwitchesThatEnd, ", "))
          .c_str())("keep-going", po::bool_switch(),
                    "train on with a loss that is NaN or infinite (default: stop, exit code 1)")(
      "check-drift", text()->value_name("N"),
      "compare the weights of the ranks every N steps, and stop where they differ; 0: never (default "
      "KOLO_CHECK_DRIFT, else 100)")("keep", text()->value_name("N"),
                                     "the newest N checkpoints, 0: all of them (default 5)")(
      "validate-every", text()->value_name("N"), "evaluate the test samples every N steps, too")(
      "early-stopping", text()->value_name("METRIC:N"),
      fmt::format("end the training after N of these evaluations without a better one, as in test_loss:5; {}",
                  evaluation_metrics())
          .c_str())(
      "keep-best", text()->value_name("METRIC"),
      fmt::format(
          "keep the weights of the best of these evaluations in the folder best of --checkpoint-dir, for "
          "--evaluate, --predict and --init-from; {}",
          evaluation_metrics())
          .c_str())(
      "log-steps", text()->value_name("N"),
      "tell the progress every N steps (default: each second on a terminal and in the logs, each 10 s in "
      "plain lines)")("seed", text()->value_name("N"),
                      "of first weights, of the order of samples and of what --prompt writes (default 1)")(
      "device", text()->value_name("WHERE"), "auto|cpu|gpu (default auto)")(
      "threads", text()->value_name("T"),
      "threads that compute (default OMP_NUM_THREADS, else cores / ranks of the host)")(
      "log-dir", text()->value_name("DIR"),
      "write metrics.jsonl there: a line of the run's parameters, and the lines that --json prints. {job} "
      "and "
      "{array} as in --checkpoint-dir")(
      "tensorboard", text()->value_name("DIR"),
      "write TensorBoard's event files there: loss, rates, evaluations, the graph and histograms of the "
      "weights")("histogram-steps", text()->value_name("N"),
                 "of --tensorboard: steps between two histograms, 0: none (default 500)")(
      "trace", text()->value_name("FILE"),
      "write a Chrome/Perfetto trace of this run's third step (its last, if it has fewer)")(
      "profile", text()->value_name("N"),
      "measure N steps from this run's third on, and print which ops and layers their time goes to, and the "
      "three nodes furthest from what the processor can do")(
      "evaluate", po::bool_switch(),
      "no training: restore the model from --checkpoint-dir and evaluate the test samples")(
      "predict", po::value<std::vector<std::string>>()->multitoken()->zero_tokens()->value_name("PATH..."),
      "no training: name, class and its share for each picture, folder of pictures, row of a .csv table, "
      "sample of a .npy array or image of an …idx3-ubyte file, in their order; - reads names from standard "
      "input (under kolorun: --stdin). With --skip-damaged pictures that cannot be decoded are left out and "
      "counted")(
      "top", text()->value_name("K"),
      "of --predict: the K classes with the largest shares, or the K likeliest labels (default: 1 class, all "
      "labels)")("output", text()->value_name("FILE"),
                 "of --predict: write a .csv or .jsonl file (default: stdout)")(
      "prompt", text()->value_name("TEXT"), "no training: gpt and lstm continue this text")(
      "length", text()->value_name("N"), "of --prompt: characters to write, in bytes (default 200)")(
      "temperature", text()->value_name("X"),
      "of --prompt: below 1 likely characters become likelier; 0: always the likeliest (default 1)")(
      "json", po::bool_switch(), "one JSON object a line on stdout")(
      "help,h", po::bool_switch(), "this text")("version", po::bool_switch(), "name and version");
  return all;
}

}  // namespace kolo::models

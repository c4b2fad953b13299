// What surrounds a network in a training: how its variables get values, and how one sees that they have them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/runtime/session.h>
#include <kolo/core/training/saver.h>

namespace kolo {

/// TensorFlow's, for the chief; the workers of a cluster take local_init_op and the two that say what is
/// ready. What is left empty is the session's own.
struct Scaffold {
  Operation init_op =
      {};  // where no checkpoint is restored; default: the initialisers of all global variables
  Feeds init_feeds = {};                               // of init_op
  std::function<void(Session& session)> init_fn = {};  // behind init_op
  /// What has to have a value before local_init_op runs and has none, by name. Default: of a worker global
  /// variables without a value, of the chief nothing.
  std::function<std::vector<std::string>(Session& session)> ready_for_local_init = {};
  Operation local_init_op = {};  // in each new session; default: the initialisers of the local variables
  /// What has no value yet, by name, when all of that is done. Default: variables without a value.
  std::function<std::vector<std::string>(Session& session)> ready = {};
  std::shared_ptr<Saver> saver = nullptr;  // restores, and saves; default: of all global variables
  Output summary_op = {};  // written with summary_dir; default: all that the graph's summaries hold
};

namespace detail {

/// Throws FailedPreconditionError `Init operations did not make model ready for local_init.` … `Variables not
/// initialized: a, b`.
void require_ready_for_local_init(Session& session, const Scaffold& scaffold);
/// Throws FailedPreconditionError `Init operations did not make model ready.` … `Variables not initialized:
/// a, b`.
void require_ready(Session& session, const Scaffold& scaffold);
/// By scaffold.ready, else the variables' names.
std::vector<std::string> not_ready(Session& session, const Scaffold& scaffold);

}  // namespace detail
}  // namespace kolo

// Short notes between the communication threads, beside the collectives: who waits for what, who has left.
#pragma once

#include <optional>
#include <string>

namespace kolo {

struct Mail {
  int from = 0;
  std::string text;
};

/// Notes from one rank to another arrive in order. One thread; nothing waits.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  virtual void post(int to, const std::string& text) = 0;
  virtual std::optional<Mail> take() = 0;
};

}  // namespace kolo

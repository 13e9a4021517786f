// SilentSession: an HTTP/2 session to an origin that responds only when the test says so, with three clients.
#pragma once

#include <cstddef>

#include "tests/unit/upstream_obedient_origin.h"

namespace carpool::test {

class SilentSession : public ObedientSession {
 protected:
  // A turn of the session's loop, whose output arrives and is not answered.
  void send() {
    turn(0);
    origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
  }
  std::size_t heads() const { return origin_->count(ObedientOrigin::kHeaders); }
  std::size_t pings() const { return origin_->count(ObedientOrigin::kPing); }
  // A request whose client leaves after this time without an answer.
  void ask_and_leave(Duration after) {
    near_.ask("GET");
    send();
    world_.now += after;
    near_.leave();
    send();
    origin_->frames.clear();
  }
  void answer_newest() {
    travel();
    origin_->respond("200", true);
    travel();
    EXPECT_EQ(near_.ends, 1U);
  }
  void rest(Duration time) {
    world_.now += time;
    turn(0);
  }
  Asker other_{world_, 0}, third_{world_, 0};
};

}  // namespace carpool::test

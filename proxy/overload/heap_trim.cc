#include "proxy/overload/heap_trim.h"

#include "proxy/execution.h"
#include "proxy/log/log.h"
#include "proxy/overload/overload.h"

namespace carpool::proxy {

namespace {
constexpr Duration kLookEvery = std::chrono::seconds(1);
}  // namespace

HeapTrim::HeapTrim(exec::Loop& loop, Execution& execution, const Overload& overload)
    : loop_(loop), execution_(execution), overload_(overload), timer_(exec::Timer::bind<&HeapTrim::look>(loop, *this)) {
  timer_.arm(loop.now() + kLookEvery);
}

void HeapTrim::look() {
  const Instant now = loop_.now();
  if (rule_.look(heap_use().unused(), overload_.sheds(Shedding::keep_alive), now)) {
    after_ = {};
    execution_.in_background(exec::lend(*this));
  } else {
    timer_.arm(now + kLookEvery);
  }
}

void HeapTrim::run() {
  const HeapUse before = heap_use();
  give_back_free_pages();
  after_ = heap_use();
  const std::uint64_t bytes = before.resident > after_.resident ? before.resident - after_.resident : 0;
  returned_.fetch_add(bytes, std::memory_order_relaxed);
  log::debug("memory", "gave back what malloc kept", {{"bytes", bytes}, {"resident", after_.resident}});
  loop_.post(*this);
}

// Also where nobody ran it, for too many tasks: then the rule is as it was.
void HeapTrim::arrive() {
  if (after_.resident != 0) rule_.done(after_.unused());
  timer_.arm(loop_.now() + kLookEvery);
}

}  // namespace carpool::proxy

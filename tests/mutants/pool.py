"""Defects of the pool, by name: the file, the correct text, the wrong one, and the program that detects it first. A text
is an expression or whole statements, and occurs exactly once in its file."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str
    new: str
    killer: str  # explorer, unit or sim; the others run after it


def m(name, path, old, new, killer):
    return Mutant(name, path, old, new, killer)


SET = "bits.fetch_or(bit, std::memory_order_seq_cst);"

MUTANTS = [
    # ---- the state word ----
    m("a takeover keeps the generation", "pool/core/entry_state.h", "home(loop).next_generation()", "home(loop)", "explorer"),
    m("a close keeps the generation", "pool/core/entry_state.h",
      "if (left == 0) after = after.without(EntryWord::kExpired).next_generation();",
      "if (left == 0) after = after.without(EntryWord::kExpired);", "unit"),
    m("an event is not asked for its generation", "pool/core/entry_state.h",
      "return word.generation() == generation && word.home() == home;", "return word.home() == home;", "unit"),
    m("an idle entry closes on an old judgement", "pool/core/entry_state.h", "was == seen", "true", "explorer"),
    m("an inspected entry can be closed as idle", "pool/core/entry_state.h", "!was.inspecting() && !was.reserved()", "!was.reserved()",
      "unit"),
    m("the first of two users to leave ends the thing", "pool/core/entry_state.h", "was.users() > 1 ? was.users() - 1 : 0", "0U",
      "explorer"),
    m("a use is not counted", "pool/core/entry_state.h", "expected.users(expected.users() + 1).used_once_more()",
      "expected.users(expected.users() + 1)", "unit"),
    m("expiry is judged a moment late", "pool/core/entry_state.h", "expires_at <= now", "expires_at < now", "unit"),
    # ---- entries and maps ----
    m("the bit of a free entry is published acq_rel", "pool/core/entry.h", SET, "bits.fetch_or(bit, std::memory_order_acq_rel);", "explorer"),
    m("the bit of a free entry is published by a plain store", "pool/core/entry.h", SET,
      "bits.store(bits.load(std::memory_order_relaxed) | bit, std::memory_order_release);", "explorer"),
    m("the cap lets one more in", "pool/core/capacity.h", "in_use() >= cap()", "in_use() > cap()", "unit"),
    m("a reservation does not look whether the pool is terminated", "pool/core/pool.h", "terminated() ? undo(*entry) : entry", "entry",
      "explorer"),
    m("a bit is taken away without a second look", "pool/core/finder.h",
      "if (!again.idle() && !again.lendable(now.most)) return false;", "if (now.most != 0) return false;", "explorer"),
    m("what is given back is not listed", "pool/core/finder.h",
      "if (missing) entry.block->idle(home).set(entry.bit());", "", "unit"),
    m("the bits of what is lent stay for ever", "pool/core/finder.h", "if ((idle.read() & entry.bit()) != 0) idle.clear(entry.bit());", "",
      "unit"),
    m("two append a block each", "pool/core/blocks.h", "if (at(n).vacant().read() != 0) return;  // another thread appended one", "", "explorer"),
    # ---- borrowing and the wait queue ----
    m("who comes goes past the line", "pool/destination/borrow.cc", "!want.new_connection_only && !want.tunnel && !waiting()", "!want.new_connection_only && !want.tunnel",
      "explorer"),
    m("a wish is published acq_rel", "pool/destination/borrow.cc", "attention.fetch_add(1, std::memory_order_seq_cst);",
      "attention.fetch_add(1, std::memory_order_acq_rel);", "explorer"),
    m("who leaves is still meant", "pool/destination/borrow.cc", "borrower.ticket_ = 0;  // a grant in flight sees this on arrival and passes on", "", "unit"),
    # ---- hand-off ----
    m("a release does not look whether somebody waits", "pool/destination/release.cc", "if (waiting()) serve_own_waiters(now, OpenCause::all_busy);  // pairs with enqueue()",
      "", "explorer"),
    m("what was given is not judged on arrival", "pool/destination/release.cc",
      "word.uses() > 1 && reusability_of(entry, word.uses() - 1, now) != Reusability::fit", "false", "unit"),
    m("who was given something worn out is forgotten", "pool/destination/release.cc", "if (meant) no = rejoin(borrower);", "", "unit"),
    m("idle time runs from the time before last", "pool/destination/release.cc", "entry.value.idle_since.set(now);", "", "unit"),
    # ---- dialing ----
    m("one failed dial fails everyone", "pool/destination/dial.cc", "if (serving() != 0) return;", "", "unit"),
    m("what is on its way is not counted", "pool/destination/destination_impl.h", "supply.dials() + pending.disposing()",
      "pending.disposing()", "unit"),
    m("a reservation that is undone leaves no trace", "pool/destination/dial.cc", "++ledger.version;  // a scan may have seen it", "", "explorer"),
    m("what somebody would take makes room", "pool/destination/eviction.cc", "now - since > most_patient", "true", "explorer"),
    m("what is being looked at counts for nothing", "pool/destination/dial.cc", "line.size() > supply.dials() && !pool.full() ? pending.inspecting() : 0", "0U",
      "unit"),
    m("what served is handed to one who takes only new ones", "pool/destination/release.cc",
      "borrower->want_.max_idle < Duration::zero() && (used || uses > 1)", "used && uses == 0", "unit"),
    m("an end under a request says nothing", "pool/destination/learn_idle_limit.cc",
      "learn_end(entry, idle_time_at_origin(entry.value, leased), served, true, now);", "", "unit"),
    m("one who lives longer refutes nothing", "pool/policy/idle_limit_learner.cc", "if (++survivors_ < kRefute) return;", "if (survivors_ == 0) return;", "unit"),
    m("a dead origin is dialed for every request", "pool/policy/circuit_breaker.h", "if (failed_) return now >= opens_at(dials) ? 1 : 0;",
      "if (failed_ && dials != 0) return now >= opens_at(dials) ? 1 : 0;", "unit"),
    m("an origin that lives again is not known to", "pool/policy/circuit_breaker.h", "known_until_ = now + kFresh;", "failed_ = true;", "unit"),
    m("a probe without an answer is the last", "pool/policy/circuit_breaker.h", "began_ + kProbeInterval", "kNever", "unit"),
    m("who waits for the probe is forgotten when none may begin", "pool/destination/dial.cc",
      "for (; !line.empty() && actions.step(); ++undialed) refuse(*line.first(), last_failure, actions);", "", "unit"),
    m("a success does not end the back-off", "pool/destination/dial.cc", "backoff.succeeded();", "", "unit"),
    # ---- surplus dials ----
    m("a recall does not look again", "pool/destination/cancel_dials.cc", "there && surplus(dial, lacking_idle_now())", "there", "unit"),
    m("the last dial is recalled too", "pool/destination/cancel_dials.cc", "supply.lasting_dials() > 1", "supply.lasting_dials() > 0", "unit"),
    m("a dial is recalled for ever", "pool/destination/cancel_dials.cc", "message.on_its_way = message.cancelled = true;", "message.on_its_way = true;", "unit"),
    m("one look is enough to recall", "pool/destination/cancel_dials.cc", "std::exchange(saw_surplus, dial != nullptr)", "dial != nullptr", "unit"),
    m("a promised place is promised for ever", "pool/destination/cancel_dials.cc", "if (promised) budget->pending_release_ended();", "", "sim"),
    # ---- the counters ----
    m("a session that drains is not counted", "pool/destination/supply.cc", "++draining_;", "", "unit"),
    m("a count below zero is possible", "pool/destination/supply.cc", "CARPOOL_ASSERT(alive_ <= kMost && cancels_ <= kMost);", "", "unit"),
    m("a dial may end as what it did not begin", "pool/destination/supply.cc",
      "CARPOOL_ASSERT(std::uint64_t{h1_dials_} + line_dials_ + redials_ <= dials_);", "", "unit"),
    # ---- without memory ----
    m("who waits has no memory for a no", "pool/destination/rejection.cc", "rejections.ready(line.size() + std::size_t{1})", "true", "unit"),
    m("a stream is granted without memory for the grant", "pool/destination/release.cc", "!grants.ready(1)", "false", "unit"),
    m("who cannot be served for want of memory waits", "pool/destination/borrow.cc", "actions.no_memory && serving() == 0 && coming() == 0", "false", "unit"),
    # ---- close and stop ----
    m("the place of what ended is never free again", "pool/destination/close.cc", "pool.vacate(entry);", "", "unit"),
    m("what ended frees nobody", "pool/destination/close.cc", "if (run_actions(actions) || actions.more) serve_own_waiters(now, why);", "static_cast<void>(run_actions(actions));",
      "unit"),
    m("a quiet inspection tells nobody", "pool/destination/close.cc", "return after_idle(now);", "return;", "explorer"),
    m("an inspection is not counted", "pool/destination/pending_places.h", "return inspections_.load(std::memory_order_seq_cst);",
      "return 0;", "unit"),
    m("who relied on an inspection that did not begin is forgotten", "pool/destination/close.cc", "owner.inspection_lost();", "", "explorer"),
    # ---- the connection budget ----
    m("a slot that comes back wakes nobody", "pool/destination/budget.cc",
      "if (budget != nullptr && budget->anyone_starved()) budget->release_for_starved(now);", "", "unit"),
    m("a free slot is taken past the starved", "pool/queue/connection_budget.cc", "return !anyone_starved() && count_one();", "return count_one();",
      "unit"),
    m("a slot that nobody used is lost", "pool/queue/connection_budget.cc", "return_unused(*next);", "", "unit"),
    m("a hand-off is never claimed", "pool/destination/release.cc", "if (claimed(entry, now)) return end(entry, CloseCause::budget, actions);", "", "unit"),
    m("a session is never claimed", "pool/destination/shared.cc",
      "if (session_claimed(entry, now)) return release_and_drain(entry, CloseCause::budget, false, now);", "", "unit"),
    m("who lacks slots takes them from who has no more", "pool/queue/connection_budget.cc", "held == 0 || who.slots() > held + 1", "true", "unit"),
    m("an offer is withdrawn without a second look", "pool/queue/connection_budget.cc", "if (!who.give_slot(now)) return false;", "return false;",
      "explorer"),
    m("who nobody waits at any more stays starved", "pool/destination/budget.cc", "if (line.empty()) budget->forget_starved(*this);", "", "unit"),
    m("what became idle is not offered", "pool/destination/budget.cc", "if (budget != nullptr) budget->offer(*this);", "", "unit"),
    # ---- classes, clients, idle pools ----
    m("a share is never given back", "pool/queue/class_quota.h", "if (of != 0) held_.fetch_sub(unit(of), std::memory_order_seq_cst);", "", "unit"),
    m("a lower class may hold everything", "pool/queue/class_quota.h", "if (room(held, of) == 0) return false;", "", "unit"),
    m("a lease counts for its class alone", "pool/queue/class_quota.h", "least = std::min(least, left(held, level));",
      "least = left(held, level);", "unit"),
    m("who has no share is dialed for", "pool/destination/dial.cc", "shares.held_back(line.by_class())", "0U", "unit"),
    m("a grant that finds nobody keeps its share", "pool/destination/release.cc", "if (!meant || !watched || worn_out) shares.release(grant.share);", "",
      "unit"),
    m("a client's wishes do not wait for each other", "pool/queue/wait_queue.h", "former == nullptr ? served_ : std::max(served_, former->virtual_finish_time_)",
      "served_", "unit"),
    m("a pool that was used a moment ago ends", "pool/destination/reclaim.cc", "now - last_use() >= time", "true", "unit"),
    m("a pool with what rests ends", "pool/destination/reclaim.cc", "actions.ended.empty() && pool.in_use() == 0", "true", "unit"),
    m("what the load needs ends as surplus", "pool/destination/trim_idle.cc", "supply.alive() > need + limits.min_idle", "supply.alive() > 1", "unit"),
    m("a pool that ended is found again", "pool/directory/directory.cc", "found != by_origin_.end() && !found->second->reclaimed()",
      "found != by_origin_.end()", "unit"),
]

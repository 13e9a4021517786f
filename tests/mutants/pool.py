"""Defects of the pool, by name: where, what becomes of it, and who has to notice. Each old text occurs exactly once."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str
    new: str
    killers: tuple  # tried in this order: explorer, sim, or a unit test file's name


def m(name, path, old, new, *killers):
    return Mutant(name, path, old, new, killers)


MUTANTS = [
    # ---- the state word ----
    m("a takeover keeps the generation", "pool/entry_state.h", "home(loop).next_generation()", "home(loop)", "explorer", "event"),
    m("a close keeps the generation", "pool/entry_state.h",
      "if (left == 0) after = after.without(Word::kExpired).next_generation();",
      "if (left == 0) after = after.without(Word::kExpired);", "event", "entry_state"),
    m("an event is not asked for its generation", "pool/entry_state.h",
      "return word.generation() == generation && word.home() == home;", "return word.home() == home;", "event", "explorer"),
    m("an idle entry closes on an old judgement", "pool/entry_state.h", "return was == seen && was.users() == 0",
      "return was.users() == 0", "explorer", "entry_state"),
    m("an inspected entry can be closed as idle", "pool/entry_state.h",
      "was.users() == 0 && !was.inspecting() && !was.reserved()", "was.users() == 0 && !was.reserved()", "explorer", "entry_state"),
    m("the first of two users to leave ends the thing", "pool/entry_state.h",
      "const std::uint32_t left = was.users() > 1 ? was.users() - 1 : 0;", "const std::uint32_t left = 0;", "explorer", "core"),
    m("a use is not counted", "pool/entry_state.h", "const Word after = expected.users(expected.users() + 1).used_once_more()",
      "const Word after = expected.users(expected.users() + 1)", "entry_state", "destination"),
    m("expiry is judged a moment late", "pool/entry_state.h", "word.expired() || expires_at <= now",
      "word.expired() || expires_at < now", "entry_state"),
    # ---- entries and maps ----
    m("the bit of a free entry is published acq_rel", "pool/entry.h",
      "void set(std::uint64_t bit) { bits.fetch_or(bit, std::memory_order_seq_cst); }",
      "void set(std::uint64_t bit) { bits.fetch_or(bit, std::memory_order_acq_rel); }", "explorer"),
    m("the bit of a free entry is published by a plain store", "pool/entry.h",
      "void set(std::uint64_t bit) { bits.fetch_or(bit, std::memory_order_seq_cst); }",
      "void set(std::uint64_t bit) { bits.store(bits.load(std::memory_order_relaxed) | bit, std::memory_order_release); }",
      "litmus", "explorer"),
    m("the cap lets one more in", "pool/pool.h", "bool full() const { return in_use() >= cap(); }",
      "bool full() const { return in_use() > cap(); }", "core", "sim"),
    m("a reservation does not look whether the pool is terminated", "pool/pool.h",
      "return terminated() ? undo(*entry) : entry;", "return entry;", "explorer"),
    m("a shared entry is unlisted without a second look", "pool/pool.h",
      "if (word.lendable(multiplex_)) entry.block->idle(word.home()).set(entry.bit());", "static_cast<void>(word);", "explorer"),
    m("two append a block each", "pool/pool.h", "if (block->vacant().read() != 0) return;  // somebody was faster", "", "explorer"),
    # ---- borrowing and the line ----
    m("who comes goes past the line", "pool/borrowing.cc", "if (!want.fresh && !want.tunnel && !waiting()) {",
      "if (!want.fresh && !want.tunnel) {", "explorer"),
    m("a wish is published acq_rel", "pool/borrowing.cc",
      "attention.fetch_add(1, std::memory_order_seq_cst);  // then plan()", "attention.fetch_add(1, std::memory_order_acq_rel);  //",
      "explorer"),
    m("who leaves is still meant", "pool/borrowing.cc", "  borrower.ticket_ = 0;  // what is in the mail finds out and passes on", "",
      "sim", "line"),
    m("who comes back stands at the end", "pool/line.h", "part.last()->ticket_ < borrower.ticket_)", "true)", "line", "sim"),
    # ---- handing on ----
    m("a release does not look whether somebody waits", "pool/handing.cc", "if (waiting()) attend(now);  // the pair of stand_in_line()",
      "", "explorer"),
    m("what was given is not judged on arrival", "pool/handing.cc", "const bool worn_out = word.uses() > 1 &&",
      "const bool worn_out = false && word.uses() > 1 &&", "line", "explorer", "destination"),
    m("who was given something worn out is forgotten", "pool/handing.cc", "if (meant) rejoin(borrower, work);", "", "explorer", "sim"),
    m("idle time runs from the time before last", "pool/handing.cc", "    entry.value.idle_since.set(now);\n    entry.value.left",
      "    entry.value.left", "destination", "sim"),
    # ---- dialing ----
    m("one failed dial fails everyone", "pool/dialing.cc", "  if (serving() != 0) return;\n", "", "dialing", "sim"),
    m("what is on its way is not counted", "pool/destination_impl.h", "return dials + ending.load(std::memory_order_seq_cst);",
      "return ending.load(std::memory_order_seq_cst);", "dialing", "sim"),
    m("a reservation that is undone leaves no trace", "pool/dialing.cc", "  ++ledger.version;  // a scan may have seen it\n", "", "explorer"),
    m("what somebody would take makes room", "pool/dialing.cc",
      "if (now - entry->value.idle_since.get() <= line.most_patient()) break;", "", "explorer"),
    m("what is being looked at counts for nothing", "pool/dialing.cc",
      "line.size() > dials && !pool.full() ? inspecting() : 0;", "0;", "dialing", "event", "line"),
    m("a success does not end the back-off", "pool/dialing.cc", "    backoff.succeeded();\n", "", "dialing"),
    # ---- ends ----
    m("a place is free before its connection is gone", "pool/ending.cc", "    pool.vacate(*entry);\n    ending.fetch_sub",
      "    ending.fetch_sub", "sim", "destination"),
    m("what ended frees nobody", "pool/ending.cc", "if (perform(work, now)) attend(now, why);", "static_cast<void>(perform(work, now));",
      "explorer", "sim"),
    m("a quiet inspection tells nobody", "pool/ending.cc", "    return came_to_rest(now);\n", "    return;\n", "explorer"),
    m("a place given back wakes nobody", "pool/total.cc", "  if (anyone_hungry()) wake_hungry(now);", "  static_cast<void>(now);",
      "explorer", "sim"),
]

"""What controls.py expects: CAUGHT: the scenario that notices the weaker order. GROUPS: orders of which each one is enough,
so that only all of them together are noticed. NEEDLESS: orders that no scenario notices alone, and why they stay; the
first row that matches counts."""
import re

CAUGHT = {
    "exec/coalesced_mail.h arrive rmw acquire": "coalesced mail: two changes share one mail",
    "exec/coalesced_mail.h arrive rmw release": "coalesced mail: two changes share one mail",
    "exec/coalesced_mail.h post rmw acquire": "coalesced mail: two changes share one mail",
    "exec/coalesced_mail.h post rmw release": "coalesced mail: two changes share one mail",
    "exec/mailbox.cc push success relaxed": "mail: two send to one",
    "exec/mailbox.cc take rmw relaxed": "mail: two send to one",
    "exec/parker.cc consume success relaxed": "mail: two send to one",
    "exec/parker.cc unpark rmw relaxed": "mail: two send to one",
    "exec/reserved_slots.h offer load acquire": "reserve: an offer meets the stop",
    "exec/reserved_slots.h offer success acq_rel": "reserve: an offer meets the stop",
    "exec/reserved_slots.h stop store release": "reserve: an offer meets the stop",
    "exec/reserved_slots.h take load acquire": "reserve: an offer meets the stop",
    "exec/strategy_word.h arrive success release": "word: the helper comes as the producer returns",
    "exec/strategy_word.h change success acquire": "word: work comes as the producer goes",
    "exec/strategy_word.h change success release": "word: work comes as the producer goes",
    "exec/strategy_word.h reacquire_role success release": "word: the helper is refused",
    "pool/core/blocks.h count load relaxed": "a scrape against a reservation that is undone",
    "pool/core/blocks.h grow store relaxed": "a scrape against a reservation that is undone",
    "pool/core/capacity.h now load acquire": "a borrower meets a place that is freed",
    "pool/core/capacity.h release rmw acq_rel": "a borrower meets a place that is freed",
    "pool/core/entry.h clear rmw acq_rel": "three takers in turn over all entries",
    "pool/core/entry.h read load acquire": "three takers in turn over all entries",
    "pool/core/entry.h set rmw acq_rel": "a borrower meets a block that empties",
    "pool/core/entry_index.cc publish store relaxed": "the index finds a block that is published",
    "pool/core/entry_index.h find load relaxed": "the index finds a block that is published",
    "pool/core/entry_state.h try_release success acq_rel": "a borrower meets a block that empties",
    "pool/core/entry_state.h try_reserve success acq_rel": "terminate against enable and reserve",
    "pool/core/entry_state.h try_terminate load acquire": "terminate against enable and reserve",
    "pool/core/finder.h clear_stale_bit load acquire 2": "two takers who go round all entries",
    "pool/destination/auto_size.cc adopt_auto_size store relaxed": "a size begins to follow the load while a wait is noted",
    "pool/destination/destination_impl.h published_auto_size load relaxed": "a size begins to follow the load while a wait is noted",
    "pool/destination/destination_impl.h waiting load acquire": "a release meets a borrower",
    "pool/destination/pending_places.h disposal_ended rmw acq_rel": "a discard meets a borrower",
    "pool/destination/pending_places.h disposing load acquire": "a discard meets a borrower",
    "pool/destination/pending_places.h inspections_ended load acquire": "an inspection that loses meets a borrower",
    "pool/destination/pending_places.h inspection_ended rmw acq_rel": "an inspection that loses meets a borrower",
    "pool/destination/reconnect.cc plan_missed load acquire": "a release meets a reconnect",
    "pool/destination/snapshot.cc snapshot load relaxed": "a scrape against a release and a borrow",
    "pool/policy/borrow_history.h note store relaxed 2": "the history is read while a record is replaced",
    "pool/policy/borrow_history.h note store relaxed 3": "the history is read while a record is replaced",
    "pool/policy/borrow_history.h read load relaxed 2": "the history is read while a record is replaced",
    "pool/policy/borrow_history.h read load relaxed 3": "the history is read while a record is replaced",
    "pool/queue/connection_budget.h has_starved load acquire": "an end meets a starved destination",
    "pool/queue/connection_budget.h offer load acquire": "an offer that is withdrawn meets a starved destination",
    "pool/queue/delivery_queue.h deliver_all rmw acquire": "deliveries: two share a wake-up",
    "pool/queue/delivery_queue.h deliver_all rmw release": "deliveries: two share a wake-up",
    "pool/queue/delivery_queue.h push success acquire": "deliveries: two share a wake-up",
    "pool/queue/delivery_queue.h push success release": "deliveries: two share a wake-up",
}

# name: (the controls, the scenario that notices all of them together)
GROUPS = {
    "attention": (r"pool/destination/\w+\.cc (enqueue|cancel|stop|refuse|grant|rejoin|review|begin_pause|end_pause) rmw|destination_impl\.h (waiting|paused|stopped) ",
                  "a release meets a borrower"),
    "word": (r"entry_state\.h \w+ \w+ (acq_rel|acquire)$", "a borrower meets a block that empties"),
    "capacity": (r"capacity\.h ", "a borrower meets a place that is freed"),
    "search": (r"finder\.h (try_one_loop|attempt|clear_stale_bit|try_last_released) ", "an offer that is withdrawn meets a starved destination"),
    "bitmap": (r"core/entry\.h ", "three takers in turn over all entries"),
    "places": (r"pending_places\.h ", "a discard meets a borrower"),
    "budget": (r"connection_budget\.(h|cc) ", "an end meets a starved destination"),
    "strategy": (r"strategy_word\.h (release_role|reacquire_role|arrive) ", "word: the helper comes as the producer returns"),
    "history": (r"borrow_history\.h ", "the history is read while a record is replaced"),
}

# (the controls, the reason)
NEEDLESS = [
    (GROUPS["attention"][0], "group attention: stopped() and paused() read it again before the search"),
    (r"entry_state\.h try_(close|close_idle|hand|inspect) ",
     "the mutex of the destination and the mail order the data of these changes, and an old value loses the compare-and-swap; "
     "a Pool<T> without a destination has no such mutex"),
    (r"entry_state\.h ", "group word: the word and the bit of its entry are both seq_cst, and either is enough in most changes"),
    (r"capacity\.h ", "group capacity: the word is changed by read-modify-writes only, which read the newest one"),
    (r"finder\.h mark_idle ", "a hint: block and number are checked by the bitmaps"),
    (r"finder\.h ", "group search: the bit is read before the word, and the word decides"),
    (r"core/entry\.h claim ", "group bitmap: try_reserve of the claimed entry follows, which is seq_cst"),
    (r"entry_index\.cc withdraw ", "the index forgets a block when its pool is destroyed: no event names it then"),
    (r"pending_places\.h ", "group places: the count is raised under the mutex"),
    (r"connection_budget\.(h|cc) ", "group budget: the starved destinations, the offers and the slots are changed under the mutex of the budget"),
    (r"destination_impl\.h is_cooling_down ", "the bit changes under the mutex, which its readers held before or take before they act on it"),
    (r"class_quota\.h held_back ", "an old count costs one dial more or less: the shares themselves are taken by read-modify-writes"),
    (r"core/pool\.h has_idle ", "only audits and tests call it, when all threads have ended or hold the mutex"),
    (r"delivery_queue\.h empty ", "only tests call it, when all threads have ended"),
    (r"borrow_history\.h ", "group history: the sequence number before and after a record are both read with acquire"),
    (r"pool/destination/\w+\.cc \w+ load relaxed",
     "the reader holds the mutex or owns the entry by a message: a close under the mutex is what it must see"),
    (r"reserved_slots\.h (offer failure|withdraw) ", "a thread that fails reads nothing; one that withdraws takes back what it wrote"),
    (r"reserved_slots\.h take rmw ", "the seq_cst load before it reads the same pointer, but for one that is offered in between"),
    (r"strategy_word\.h ", "group strategy: every change of the word is a read-modify-write, so that the release of the last producer goes on"),
]


def needless(name):
    return next((reason for controls, reason in NEEDLESS if re.search(controls, name)), None)

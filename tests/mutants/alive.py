"""The mutants that no test is known to detect yet, in the order of their tables: work that is left."""

NAMES = {
    # Only a connection that is released between the match of the idle ones and the eviction suits a waiter.
    "a connection that a waiter accepts is evicted",
    # Only if the same search then loses an expired entry to another thread and takes a third: else its borrower waits, and all are served.
    "a search that lists an entry again and takes none serves no waiter",
    # A session in use expires, ends and has a successor in its place, between a search and its mutex.
    "a search drains the next session of an expired entry",
    # The size that follows the load: no test has these measurements.
    "a slow origin gets more",
    "an origin that answers no more gets more",
    "a growth is tried while another one is judged",
    "steps do not grow",
    "an origin that is hardly used is judged",
    "an answer that refuses counts as one in time",
    "time-outs of before count again",
    # The next lease is a trial too, so the waiters are served one after another; no test counts them at one moment.
    "the answer to a trial ends no pause",
    # Only the access log has this number.
    "a retry is not counted",
}

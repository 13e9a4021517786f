"""Which call of which function fails how. A case is one fault during one mix of requests."""
import dataclasses
import errno as e
import random
import re

from control import ALWAYS, SHORT, error_name

PASSING = (e.EINTR, e.EAGAIN, SHORT)  # the call succeeds when it is repeated
LACK = (e.EMFILE, e.ENFILE, e.ENOMEM)

ERRORS = {
    "accept": (e.EINTR, e.EAGAIN, *LACK, e.ENOBUFS, e.ECONNABORTED, e.EPERM),
    "connect": (e.EINTR, e.EADDRNOTAVAIL, e.ECONNREFUSED, e.ENETUNREACH, e.ENOBUFS, e.EAGAIN, e.EACCES),
    "socket": (*LACK, e.ENOBUFS),
    "recv_client": (*PASSING, e.ECONNRESET, e.ENOMEM, e.EIO, e.ETIMEDOUT),
    "recv_origin": (*PASSING, e.ECONNRESET, e.ENOMEM, e.EIO, e.ETIMEDOUT),
    "send_client": (*PASSING, e.EPIPE, e.ECONNRESET, e.ENOBUFS, e.ENOMEM, e.EIO),
    "send_origin": (*PASSING, e.EPIPE, e.ECONNRESET, e.ENOBUFS, e.ENOMEM, e.EIO),
    "epoll_add": (e.ENOSPC, e.ENOMEM),
    "epoll_wait": (e.EINTR,),
    "thread": (e.EAGAIN,),
    "open": (*LACK, e.EACCES, e.EIO),
    "read_file": (e.EINTR, SHORT, e.EIO),
    "write_file": (e.EINTR, e.EAGAIN, SHORT, e.ENOSPC, e.EIO, e.EPIPE),
    "sync": (e.EIO, e.ENOSPC),
    "memory": (e.ENOMEM,),
}
# Faults of any kind that may cost no request: a client waits, a line of the log is lost, a thread is missing.
UNFELT = ("epoll_wait", "thread", "write_file", "sync")


@dataclasses.dataclass(frozen=True)
class Case:
    function: str
    error: int
    nth: int
    times: int

    def __str__(self):
        times = "from call %d on" % self.nth if self.times == ALWAYS else "at call %d" % self.nth
        return "%s %s %s%s" % (self.function, error_name(self.error), times, ", %d times" % self.times if 1 < self.times < ALWAYS else "")

    def is_harmless(self):
        """Returns whether every request must succeed nevertheless."""
        if self.function == "accept":
            return self.error != e.ECONNABORTED  # there the client is gone
        return self.function in UNFELT or self.error in (e.EINTR, SHORT) or self.error == e.EAGAIN and self.function != "connect"


def every(calls):
    """Returns all cases for programs that make so many calls of each function during a mix: each call alone, each third one with
    the two that follow it, and all of them."""
    found = []
    for function, errors in ERRORS.items():
        for error in errors:
            found += [Case(function, error, n, 1) for n in range(1, calls[function] + 1)]
            if function != "memory":
                found += [Case(function, error, n, 3) for n in range(1, calls[function] + 1, 3)]
                found.append(Case(function, error, 1, ALWAYS))
    return found


def interruptions(cases):
    """Returns those of the cases in which a signal interrupts one transfer. Whether that call finds bytes depends on the moment."""
    return [case for case in cases if case.error == e.EINTR and case.times == 1 and case.function.startswith(("recv", "send"))]


def sample(cases, count, seed):
    """Returns so many of the cases; str() names the kind of fault, and the kinds take turns, so that each is included."""
    chance = random.Random(seed)
    kinds = {}
    for case in cases:
        kinds.setdefault(re.sub(r"\d+", "", str(case)), []).append(case)
    for kind in kinds.values():
        chance.shuffle(kind)
    chosen = []
    while len(chosen) < min(count, len(cases)):
        for kind in kinds.values():
            if kind and len(chosen) < count:
                chosen.append(kind.pop())
    chance.shuffle(chosen)
    return chosen

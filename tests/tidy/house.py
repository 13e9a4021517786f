"""Who may know whom: rooms point one way, each library has one door, atomics live in few named files.

The rooms and their directions are read from CMakeLists.txt, so that there is one place that says them; what the design
rests on is repeated here and compared, so that nobody loosens it by accident.
"""
import fnmatch
import re

from tree import Offence

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ROOM = re.compile(r"carpool_room\(\s*(.*?)\)", re.S)

# (room, room it must never reach)
NEVER = [("base", "metrics"), ("base", "exec"), ("base", "pool"), ("metrics", "exec"), ("metrics", "pool"),
         ("exec", "pool"), ("pool", "exec"), ("http", "net"), ("http", "exec"), ("config", "exec"), ("config", "net")]
NEVER += [(low, high) for low in ("base", "metrics", "exec", "pool") for high in ("http", "net", "config", "proxy")]

# header of a library -> the only files that may include it; tests may include what they test with
DOORS = {
    "uv.h": ["exec/uv/*"],
    "sys/epoll.h": ["exec/uv/*"],
    "openssl/*": ["proxy/tls/*"],
    "llhttp.h": ["proxy/http/h1_*"],
    "nghttp2/*": ["proxy/http/h2_*"],
    "prometheus/*": ["metrics/prometheus*"],
    "toml++/*": ["proxy/config/read*"],
    "toml.hpp": ["proxy/config/read*"],
    "ares*.h": ["proxy/dns/*"],
    "spdlog/*": ["proxy/log/*"],
    "fmt/*": ["proxy/log/*"],
    "nlohmann/*": ["proxy/admin/*", "proxy/cli/*", "proxy/webhook/*"],
    "zlib.h": ["proxy/admin/gzip*"],
    "idn2.h": ["pool/origin*"],
    "gtest/*": [],
    "gmock/*": [],
    "benchmark/*": [],
}

# Each of these names the partner of every memory order in it.
ATOMICS = ["pool/atomic*", "pool/entry*", "pool/pool*", "pool/blocks*", "pool/finder*", "pool/lender*", "pool/room*", "pool/waiters*", "pool/destination*", "pool/delivery*", "pool/ledger*", "pool/limits*", "pool/seat*", "pool/shares*",
           "pool/connection_budget*", "pool/history*", "exec/atomic.h", "exec/mail*", "exec/uv/loop*", "exec/strategy*", "exec/task_limit*", "exec/reserve*", "exec/thread_pool*", "exec/parker*", "metrics/*",
           "proxy/downstream/listener*", "proxy/downstream/client_list*", "proxy/exchange/listen_point*", "proxy/drain*", "proxy/overload/*", "proxy/reload/reloader*", "proxy/admin_sessions*", "proxy/retry_budget*", "proxy/rate_limit*", "proxy/dial_cost*", "proxy/admin_control*", "proxy/tls_identity*", "proxy/upstream/connection*", "proxy/origins*", "proxy/log/levels*", "proxy/net/policy*", "proxy/net/address_book*", "proxy/house*"]


def rooms(tree):
    """name -> (directories, rooms it links), from the carpool_room lines."""
    found = {}
    for body in ROOM.findall((tree.root / "CMakeLists.txt").read_text()):
        words, key = body.split(), "NAME"
        parts = {"NAME": [], "DIRS": [], "LINK": [], "PRIVATE": []}
        for word in words:
            if word in parts:
                key = word
            else:
                parts[key].append(word)
        name = parts["NAME"][0]
        found[name] = (parts["DIRS"] or [name], [w.removeprefix("carpool_") for w in parts["LINK"] if w.startswith("carpool_")])
    return found


def reach(house, name):
    seen, todo = set(), [name]
    while todo:
        room = todo.pop()
        if room not in seen:
            seen.add(room)
            todo += house[room][1]
    return seen


def room_of(house, path):
    """The room whose directory is the longest prefix of the path."""
    best = max((d for dirs, _ in house.values() for d in dirs if path.startswith(d + "/")), key=len, default=None)
    return next((name for name, (dirs, _) in house.items() if best in dirs), None) if best else None


def includes(tree, paths):
    for path, line, match in tree.grep(paths, INCLUDE):
        yield path, line, match.group(1), match.group(2)


def include_direction(tree):
    house = rooms(tree)
    for low, high in NEVER:
        if low in house and high in reach(house, low):
            yield Offence("CMakeLists.txt", 1, "room %s reaches room %s" % (low, high))
    allowed = {name: reach(house, name) for name in house}
    for path, line, quote, header in includes(tree, tree.product()):
        room, other = room_of(house, path), room_of(house, header)
        if quote == '"' and other is None:
            yield Offence(path, line, '"%s" is not a path from the root' % header)
        elif room and other and other not in allowed[room]:
            yield Offence(path, line, "room %s may not include %s of room %s" % (room, header, other))


def one_door(tree):
    for path, line, _, header in includes(tree, tree.product()):
        for pattern, doors in DOORS.items():
            if fnmatch.fnmatch(header, pattern) and not any(fnmatch.fnmatch(path, d) for d in doors):
                yield Offence(path, line, "<%s> belongs to %s" % (header, ", ".join(doors) or "tests"))


def named_atomics(tree):
    atomic = re.compile(r"\bstd::atomic\w*|\batomic_thread_fence\b|#include <atomic>")
    for path, line, match in tree.grep(tree.product(), atomic):
        if not any(fnmatch.fnmatch(path, a) for a in ATOMICS):
            yield Offence(path, line, "%s outside the files named in tests/tidy/house.py" % match.group(0))

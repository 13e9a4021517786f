"""Rules that one line of text decides."""
import re

from tree import Offence

SELF = "tests/tidy/"
# A test waits for an event with a deadline; this file holds the one pause between two looks.
MAY_PAUSE = {"tests/bench/exec_bench.cc",  # a task that sleeps is what it measures
             "tests/e2e/harness/wait.py"}


def opening_comment(tree):
    """A source file starts by stating its one idea; that of x.cc may stand in x.h."""
    files = set(tree.files)
    for path in tree.with_suffix(".h", ".cc", ".py"):
        if path.endswith(".cc") and path.removesuffix("cc") + "h" in files or path.startswith("tests/unit/"):
            continue  # there the names of the tests say it
        lines = [line for line in tree.lines(path)[:3] if line.strip() and not line.startswith("#!")]
        if lines and not lines[0].startswith(("//", '"""', "# ")):
            yield Offence(path, 1, "starts without a comment that says what it is for")


def comment_opening(tree):
    """A comment names its subject first: the class, the connection, the caller."""
    opening = re.compile(r"//\s*(What|Who|Whoever|Nobody|Somebody|Of|Its|That)\b")
    for path, line, match in tree.grep(tree.with_suffix(".h", ".cc"), opening):
        yield Offence(path, line, "a comment opens with %s: name its subject first" % match.group(1))


# Metaphors for which the field has words (CONTRIBUTING.md lists them), and subjects that name no part of the program.
METAPHORS = "gravediggers?|undertakers?|graves?|seats?|chairs?|farewells?|postman|heirs?|hungry|hunger|errands?|bury|buries|guests?|deaf"
UNNAMED = "nobody|somebody|whoever|everybody|anybody|anyone|everyone|someone"
# Idioms in place of a verb that a manual would use.
IDIOMS = "says? nothing|in vain|go(?:es)? ahead|anew|for ever|worth nothing|look(?:s|ed) at|hears? of"


def field_words(tree):
    words = re.compile(r"//.*\b(%s|%s|%s)\b" % (METAPHORS, UNNAMED, IDIOMS), re.I)
    for path, line, match in tree.grep(tree.with_suffix(".h", ".cc"), words):
        yield Offence(path, line, "%s: CONTRIBUTING.md has the field's word" % match.group(1))
    pages = [p for p in tree.files if p.endswith(".md")]
    for path, line, match in tree.grep(pages, re.compile(r"\b(%s|%s|%s)\b" % (METAPHORS, UNNAMED, IDIOMS))):
        yield Offence(path, line, "%s: name the subject, in the field's words" % match.group(1))


def unfinished(tree):
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    texts = [p for p in tree.files if not p.startswith(SELF) and not p.endswith(".png")]  # a picture's bytes spell anything
    for path, line, match in tree.grep(texts, words):
        yield Offence(path, line, "%s: finish it or write down the limit in docs/" % match.group(0))


# What a dial or a client's handshake holds while it lasts, however often its file is renewed: counted per connection, never per request.
PER_CONNECTION = ("proxy/upstream/origin/tls_identity.", "proxy/upstream/pending_dial.", "proxy/upstream/origin/origin_registry.",
                  "proxy/downstream/listener_identity.", "proxy/downstream/listener_credentials.")


def ownership(tree):
    """Pool, execution and data plane own by move: nothing is counted, nothing is type-erased on the request path."""
    data_plane = [p for p in tree.product()
                  if p.startswith(("pool/", "exec/", "proxy/http/", "proxy/net/", "proxy/upstream/", "proxy/exchange/", "proxy/downstream/"))
                  or p.count("/") == 2 and p.startswith("proxy/server/")]
    data_plane = [p for p in data_plane if not p.startswith((*PER_CONNECTION, "proxy/net/dns/", "proxy/net/tls/"))]
    data_plane = [p for p in data_plane if p not in ("exec/fan_out.h", "proxy/server/admin_control.cc")]  # the admin thread's question to the loops
    banned = re.compile(r"std::(function|shared_ptr|make_shared|weak_ptr|enable_shared_from_this)\b")
    for path, line, match in tree.grep(data_plane, banned):
        if not tree.lines(path)[line - 1].lstrip().startswith("//"):
            yield Offence(path, line, "%s on the request path" % match.group(0))
    naked = re.compile(r"(?<![\w:])new\s+[A-Za-z_:]+\s*[({]|(?<![\w:])delete(\[\])?\s+\w")
    for path, line, match in tree.grep(tree.product(), naked):
        text = tree.lines(path)[line - 1]
        if "unique_ptr<" not in text and not text.lstrip().startswith("//"):  # a private constructor's owner takes it at once
            yield Offence(path, line, "naked %s" % match.group(0).strip())


def bounded_json(tree):
    """JSON is parsed within bounds and written without an exception: base/json_bounds.h does both."""
    readers = [p for p in tree.product() if p.startswith(("proxy/server/admin/", "proxy/commands/cli/", "proxy/commands/webhook/"))]
    for path, line, match in tree.grep(readers, re.compile(r"\bJson::parse\(|\bjson::parse\(|\.dump\(")):
        yield Offence(path, line, "%s: read_json and json_text of base/json_bounds.h" % match.group(0))


# These wait again in any case: for events, for a client, for a key.
MAY_BE_INTERRUPTED = {"base/repeat_interrupted.h", "exec/uv/loop.cc", "proxy/net/acceptor.cc", "proxy/commands/cli/screen.cc"}


def interrupted_calls(tree):
    """A call that a signal interrupts is repeated: after edge-triggered readiness no further event announces the same bytes."""
    transfer = re.compile(r"(?<![\w>&])::(recv|recvmsg|recvfrom|send|sendmsg|sendto)\((?!\))")
    returned = re.compile(r"return ::\w+\([^=<>]*\);")
    for path, line, match in tree.grep([p for p in tree.product() if p not in MAY_BE_INTERRUPTED], re.compile(r"\bEINTR\b")):
        yield Offence(path, line, "handles EINTR itself: use repeat_interrupted()")
    for path, line, match in tree.grep(tree.product(), transfer):
        if not returned.search(re.sub(r"->|<[\w*: ]+>", "", match.string)):
            yield Offence(path, line, "the result of ::%s() does not go to repeat_interrupted()" % match.group(1))


def no_sleep(tree):
    pause = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|asyncio\.sleep|time\.sleep)\b|(?<![\w.])sleep\(|^\s*sleep\s")
    tests = [p for p in tree.files if p.startswith("tests/") and not p.startswith(SELF) and p not in MAY_PAUSE and not p.endswith(".md")]
    for path, line, match in tree.grep(tests + tree.product(), pause):
        yield Offence(path, line, "%s: wait for the event itself, with a deadline" % match.group(0).strip())


def machine_paths(tree):
    """Nothing in the tree says on which machine it was written, or where packages come from."""
    foreign = re.compile(r"(?<![\w.$@}])/(work|root|opt/wheels)/|/home/\w+/|/Users/\w+/|\b(pypi\.org|files\.pythonhosted|proxy\.golang\.org|registry\.npmjs)")
    for path, line, match in tree.grep([p for p in tree.files if not p.startswith(SELF)], foreign):
        yield Offence(path, line, "%s has no business here" % match.group(0))


def log_modules(tree):
    """PUT /log-level sets the level of a module, so every line belongs to one that it knows, and each of these has lines."""
    table = "proxy/telemetry/log_levels.h"
    known = re.search(r"kModules\{(.*?)\};", "\n".join(tree.lines(table)), re.S) if table in tree.files else None
    names = set(re.findall(r'"(\w+)"', known.group(1))) if known else set()
    line = re.compile(r'log::(?:debug|info|warn|error)\("(\w+)"')
    used = {"access"}  # whose lines the access log writes itself
    for path, number, match in tree.grep(tree.with_suffix(".h", ".cc"), line):
        used.add(match.group(1))
        if match.group(1) not in names:
            yield Offence(path, number, "log module %s is not in %s" % (match.group(1), table))
    for name in sorted(names - used):
        yield Offence(table, 1, "no line has the log module %s" % name)

"""curl's own test suite with carpool as its proxy: the cases of plain HTTP that say nothing of a proxy themselves. Fields of one hop,
Via and the order of fields are left out of the comparison (see COMMON); the suite's servers end the lines of their heads with CRLF.

The suite's server is made for one connection at a time. A connection that ends while a request on another one pauses takes the state
of that request with it, and a connection is closed up to 50 ms after its response, unannounced. So the cases that write, and those that
compare when the server's connection ends, run with one request per connection; those that only read, which carpool may repeat, run with
connections that are used again. Cases whose origin ends the lines of a head in LF alone run with the setting that allows it."""
import os
import re
import shutil
import subprocess

import fetch
import peers
import scene

OPTIONS = """--with-openssl --with-nghttp2 --disable-shared --enable-static --disable-ldap --without-libpsl --without-brotli --without-zstd
--without-librtmp --without-libidn2 --disable-manual --enable-debug CFLAGS=-O0""".split()
OF_ANOTHER_KIND = re.compile("proxy|SOCKS|HTTPS|CONNECT", re.IGNORECASE)
LIBRARY = "carpool.pm"
READS = re.compile(r"(GET|HEAD|OPTIONS) ")
BARE_LF = "1425 1426 3008 3011 3012 3013 3014".split()
SETTINGS = '[request]\nresponse_header_timeout = "10s"\n'
ONCE = "[pool]\nmax_usage = 1\n"
LENIENT = '[[origin]]\nuri = "http://127.0.0.1:%d"\n[origin.upstream]\nlenient = ["bare_lf"]\n'
# Two messages are equal if what is of each connection, and what the RFC leaves to each sender, is left out (RFC 9110, 5.3, 5.5, 7.6).
COMMON = r"""
sub end_to_end {
    my $text = join("", @{$_[0]});
    $text =~ s/^(?:Via|Connection|Proxy-Connection|Keep-Alive|Transfer-Encoding|TE|Date):.*\n//mgi;
    $text =~ s/^([A-Z]+ \S+ HTTP\/1\.)[01]/${1}1/mg;
    $text =~ s/^HTTP\/1\.[01] (\d\d\d)[^\r\n]*/HTTP\/1.1 $1/mg;
    $text =~ s/^([A-Za-z0-9-]+:)[ \t]*(.*?)[ \t]*\r\n/$1 $2\r\n/mg;
    my (@out, @fields);
    for my $line (split(/(?<=\n)/, $text), "") {
        if($line =~ /^[A-Za-z0-9-]+:.*\r\n\z/) { push @fields, $line; next; }
        push @out, sort { lc(($a =~ /^([^:]+)/)[0]) cmp lc(($b =~ /^([^:]+)/)[0]) } @fields;
        @fields = ();
        push @out, $line;
    }
    return join("", @out);
}
{
    no warnings 'redefine';
    *main::compareparts = sub { return end_to_end($_[0]) ne end_to_end($_[1]) ? 1 : 0; };
}
1;
"""


def built():
    """Returns the tests' folder of a built curl."""
    folder = fetch.source("curl")
    if not (folder / "tests/server/sws").exists():
        fetch.command("./configure", "-q", *OPTIONS, cwd=folder)
        for part in ("lib", "src", "tests/server"):
            fetch.command("make", "-s", "-j2", "-C", part, cwd=folder, limit=1800)
    return folder / "tests"


def prepare(tests, origin_port, common=COMMON):
    """Puts the comparison of end-to-end fields beside the suite, and fixes the server's port."""
    (tests / LIBRARY).write_text(common)
    text = (tests / "runtests.pl").read_text(errors="surrogateescape").replace('ipv$ipvnum --port 0 "', 'ipv$ipvnum --port %d "' % origin_port)
    # The suite has a switch for clients that want CRLF from its servers; here it is always on.
    (tests / "runtests-crlf.pl").write_text(text.replace("$has_hyper &&", "1 &&"), errors="surrogateescape")


def part(text, name):
    found = re.search("<%s>(.*?)</%s>" % (name, name), text, re.DOTALL)
    return found[1].strip() if found else ""


def chosen(tests):
    """Returns the numbers of the cases of plain HTTP that run curl itself and use no proxy of their own, by group."""
    groups = {"read": [], "once": [], "bare LF": []}
    for file in sorted((tests / "data").glob("test[0-9]*"), key=lambda file: int(file.name[4:])):
        text = file.read_text(errors="replace")
        own = "<tool>" in text or "-x " in part(text, "command") or "--proxy" in text or OF_ANOTHER_KIND.search(part(text, "keywords"))
        if part(text, "server") == "http" and not own:
            requests = re.findall(r"^(.*) HTTP/1\.[01]$", text.partition("<protocol")[2], re.MULTILINE)
            once = "[DISCONNECT]" in text or not all(map(READS.match, requests))
            groups["bare LF" if file.name[4:] in BARE_LF else "once" if once else "read"].append(file.name[4:])
    return groups


def run(tests, proxy, cases):
    """Returns what the suite says; with -p that is also the log of each failed case."""
    shutil.rmtree(tests / "log", ignore_errors=True)
    options = ["-P", "http://127.0.0.1:%d" % proxy] if proxy else []
    done = subprocess.run(["perl", "runtests-crlf.pl", "-n", "-a", "-p", "-am", "-L", "./" + LIBRARY, *options, *cases], cwd=tests, timeout=1500,
                          capture_output=True, text=True, errors="replace", check=False, env={**os.environ, "http_proxy": ""})
    return done.stdout


def through_a_peer(tests, name, cases):
    # HAProxy writes the names of fields in lower case.
    prepare(tests, 0, COMMON.replace("/$1 $2", "/\\L$1\\E $2") if name == "haproxy" else COMMON)
    if name == "none":
        return run(tests, 0, cases)
    port = scene.free_port()
    with peers.peer(name, port):
        return run(tests, port, cases)


def through_carpool(tests, groups):
    said, origin = "", scene.free_port()
    prepare(tests, origin)
    for group, more in (("read", ""), ("once", ONCE), ("bare LF", LENIENT % origin)):
        port = scene.free_port()
        with scene.carpool(port, SETTINGS + more):
            said += run(tests, port, groups[group])
    return said


def suite(report, peer):
    tests = built()
    groups = chosen(tests)
    said = through_a_peer(tests, peer, sum(groups.values(), [])) if peer else through_carpool(tests, groups)
    (fetch.FOLDER / "curl-said").write_text(said)
    # A wrong exit status of curl has no line of its own: the last line names every failed case.
    failed = re.findall(r"\d+", "".join(re.findall(r"^TESTFAIL: These test cases failed: (.*)$", said, re.MULTILINE)))
    reasons = dict(re.findall(r"^FAIL: (\d+) - (.*)$", said, re.MULTILINE))
    for number in re.findall(r"^PASS: (\d+) - ", said, re.MULTILINE):
        if number not in failed:
            report.case(number, True)
    for number in failed:
        report.case(number, False, reasons.get(number, "curl's exit status or the server's input"))
    if not report.cases:
        print(said)
        raise RuntimeError("the suite named no case")


if __name__ == "__main__":
    scene.main(suite, peers=["none", *peers.NAMES])

"""curl's own test suite with carpool as its proxy: the cases of plain HTTP that say nothing of a proxy themselves. Fields of one hop,
Via and the order of fields are left out of the comparison (see COMMON); the suite's servers end the lines of their heads with CRLF."""
import os
import re
import shutil
import subprocess

import fetch
import scene

OPTIONS = """--with-openssl --with-nghttp2 --disable-shared --enable-static --disable-ldap --without-libpsl --without-brotli --without-zstd
--without-librtmp --without-libidn2 --disable-manual --enable-debug CFLAGS=-O0""".split()
OF_ANOTHER_KIND = re.compile("proxy|SOCKS|HTTPS|CONNECT", re.IGNORECASE)
LIBRARY = "carpool.pm"
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
    """Returns the tests' folder of a built curl, with the comparison of end-to-end fields beside the suite."""
    folder = fetch.source("curl")
    if not (folder / "tests/server/sws").exists():
        fetch.command("./configure", "-q", *OPTIONS, cwd=folder)
        for part in ("lib", "src", "tests/server"):
            fetch.command("make", "-s", "-j2", "-C", part, cwd=folder, limit=1800)
    tests = folder / "tests"
    (tests / LIBRARY).write_text(COMMON)
    text = (tests / "runtests.pl").read_text(errors="surrogateescape")
    # The suite has a switch for clients that want CRLF from its servers; here it is always on.
    (tests / "runtests-crlf.pl").write_text(text.replace("$has_hyper &&", "1 &&"), errors="surrogateescape")
    return tests


def part(text, name):
    found = re.search("<%s>(.*?)</%s>" % (name, name), text, re.DOTALL)
    return found[1].strip() if found else ""


def chosen(tests):
    """Returns the numbers of the cases of plain HTTP that run curl itself and use no proxy of their own."""
    for file in sorted((tests / "data").glob("test[0-9]*"), key=lambda file: int(file.name[4:])):
        text = file.read_text(errors="replace")
        own = "<tool>" in text or "-x " in part(text, "command") or "--proxy" in text or OF_ANOTHER_KIND.search(part(text, "keywords"))
        if part(text, "server") == "http" and not own:
            yield file.name[4:]


def run(tests, proxy):
    shutil.rmtree(tests / "log", ignore_errors=True)
    options = ["-P", "http://127.0.0.1:%d" % proxy] if proxy else []
    done = subprocess.run(["perl", "runtests-crlf.pl", "-n", "-a", "-am", "-L", "./" + LIBRARY, *options, *chosen(tests)], cwd=tests, timeout=1500,
                          capture_output=True, text=True, errors="replace", check=False, env={**os.environ, "http_proxy": ""})
    return done.stdout


def suite(report, peer):
    tests = built()
    if peer:
        said = run(tests, int(os.environ.get("PEER_PORT", "0")))
    else:
        port = scene.free_port()
        with scene.carpool(port, '[request]\nresponse_header_timeout = "10s"\n'):
            said = run(tests, port)
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
    scene.main(suite, peers=["none"])

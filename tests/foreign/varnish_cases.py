"""Cases for varnishtest, whose client and origin are independent of carpool's libraries: messages of HTTP/1.1 and HTTP/2."""
import pathlib
import subprocess
import tempfile

import fetch
import scene

TARGET = '-url "http://${s1_addr}:${s1_port}/a?b=c" -hdr "Host: x"'
RAW = "GET http://${s1_addr}:${s1_port}/ HTTP/1.1\\r\\nHost: x\\r\\n"
OPEN_H2 = """txpri
stream 0 {
txsettings
rxsettings
txsettings -ack
} -run
"""
# What the origin does, and what the client does.
THROUGH = {
    "get": ('rxreq\nexpect req.url == "/a?b=c"\nexpect req.http.host ~ "^127.0.0.1:"\ntxresp -body foo',
            "txreq %s\nrxresp\nexpect resp.status == 200\nexpect resp.body == foo" % TARGET),
    "head": ("rxreq\nexpect req.method == HEAD\ntxresp -hdr \"Content-Length: 7\" -nolen",
             "txreq -req HEAD %s\nrxresp -no_obj\nexpect resp.http.content-length == 7" % TARGET),
    "post": ("rxreq\nexpect req.body == hello\ntxresp -status 201", "txreq -req POST %s -body hello\nrxresp\nexpect resp.status == 201" % TARGET),
    "chunked-response": ("rxreq\ntxresp -nolen -hdr \"Transfer-Encoding: chunked\"\nchunked abc\nchunked def\nchunkedlen 0",
                         "txreq %s\nrxresp\nexpect resp.body == abcdef" % TARGET),
    "chunked-request": ("rxreq\nexpect req.body == abcdef\ntxresp",
                        "txreq -req POST %s -nolen -hdr \"Transfer-Encoding: chunked\"\nchunked abc\nchunked def\nchunkedlen 0\nrxresp\n"
                        "expect resp.status == 200" % TARGET),
    "fields-of-one-hop": ('rxreq\nexpect req.http.x-secret == <undef>\nexpect req.http.keep-alive == <undef>\n'
                          'expect req.http.proxy-connection == <undef>\nexpect req.http.x-stay == 1\n'
                          'txresp -hdr "Connection: X-Drop" -hdr "X-Drop: 1" -hdr "X-Keep: 2"',
                          'txreq %s -hdr "Connection: X-Secret" -hdr "X-Secret: 1" -hdr "Keep-Alive: timeout=5" -hdr "Proxy-Connection: keep-alive" '
                          '-hdr "X-Stay: 1"\nrxresp\nexpect resp.http.x-drop == <undef>\nexpect resp.http.x-keep == 2' % TARGET),
    "keep-alive": ("rxreq\ntxresp -body one\nrxreq\ntxresp -body two",
                   "txreq %s\nrxresp\nexpect resp.body == one\ntxreq %s\nrxresp\nexpect resp.body == two" % (TARGET, TARGET)),
    "no-content": ("rxreq\ntxresp -status 204 -nolen", "txreq %s\nrxresp -no_obj\nexpect resp.status == 204\n"
                   "expect resp.http.content-length == <undef>" % TARGET),
    "interim": ('rxreq\nsend "HTTP/1.1 103 Early Hints\\r\\nLink: </a>\\r\\n\\r\\n"\ntxresp -body foo',
                "txreq %s\nrxresp -no_obj\nexpect resp.status == 103\nrxresp\nexpect resp.status == 200" % TARGET),
    "tunnel": ("recv 4\nsend pong\nrecv 3",
               'send "CONNECT ${s1_addr}:${s1_port} HTTP/1.1\\r\\nHost: ${s1_addr}:${s1_port}\\r\\n\\r\\n"\nrxresp -no_obj\n'
               "expect resp.status == 200\nsend ping\nrecv 4\nsend bye"),
    "h2-get": ("rxreq\nexpect req.url == /a\ntxresp -body foo",
               OPEN_H2 + 'stream 1 {\ntxreq -url /a -hdr :authority "${s1_addr}:${s1_port}"\nrxresp\nexpect resp.status == 200\n'
               "expect resp.body == foo\n} -run"),
    "h2-post": ("rxreq\nexpect req.body == hello\ntxresp -status 201",
                OPEN_H2 + 'stream 1 {\ntxreq -req POST -url /a -hdr :authority "${s1_addr}:${s1_port}" -body hello\nrxresp\n'
                "expect resp.status == 201\n} -run"),
}
REFUSED = {
    "two-lengths": RAW + "Content-Length: 1\\r\\nContent-Length: 2\\r\\n\\r\\nab",
    "length-and-chunked": RAW + "Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
    "space-before-colon": RAW + "X-A : 1\\r\\n\\r\\n",
    "folded-field": RAW + "X-A: 1\\r\\n 2\\r\\n\\r\\n",
    "two-hosts": RAW + "Host: y\\r\\n\\r\\n",
    "no-host": "GET / HTTP/1.1\\r\\n\\r\\n",
}


def texts():
    for name, (origin, client) in THROUGH.items():
        yield name, 'varnishtest "%s"\nserver s1 {\n%s\n} -start\nclient c1 -connect ${carpool} {\n%s\n} -run\nserver s1 -wait\n' % (name, origin, client)
    for name, sent in REFUSED.items():
        sent = sent.replace("${s1_addr}:${s1_port}", "127.0.0.1:1")
        yield name, 'varnishtest "%s"\nclient c1 -connect ${carpool} {\nsend "%s"\nrxresp\nexpect resp.status == 400\nexpect_close\n} -run\n' % (name, sent)


def suite(report, peer):
    program, environment = fetch.debian("varnishtest", "varnish", "libvarnishapi3")
    port = scene.free_port()
    with tempfile.TemporaryDirectory() as folder, scene.carpool(port):
        for name, text in texts():
            file = pathlib.Path(folder, name + ".vtc")
            file.write_text(text)
            done = subprocess.run([program, "-D", "carpool=127.0.0.1:%d" % port, "-t", "20", file], capture_output=True, text=True, errors="replace",
                                  env={**environment, "PATH": "/usr/bin:/bin", "TMPDIR": folder}, timeout=60, check=False)
            why = [line for line in done.stdout.splitlines() if line.startswith("---- ")]
            report.case(name, done.returncode == 0, (why or [done.stderr.strip()[-120:] or "exit status %d" % done.returncode])[0])


if __name__ == "__main__":
    scene.main(suite)

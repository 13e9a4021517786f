"""The sessions of docs/quickstart.md and docs/leaving.md, in front of the configuration that stands there."""
from harness.transcript import Reader


def test_the_first_requests_share_a_connection(origin, carpool, context, pki):
    def respond(exchange):
        exchange.read_body()
        exchange.reply(body=b"ok\n")
    o = origin(respond, tls=context)
    uri = "https://origin.test:%d" % o.port
    c = carpool(origin=[{"uri": uri, "alias": ["api"], "addresses": [o.authority], "pool": {"size": 8}}], upstream={"tls": {"ca_file": pki.ca}})
    reader = Reader(c)
    plain = reader.run
    reader.run = lambda command, **more: plain(command, **more).replace(uri, "https://api.example.com")
    reader.follow("docs/quickstart.md", "Your own origin")
    reader.follow("docs/quickstart.md", "If a request fails")


def test_egress_refuses_what_smokescreen_refuses(carpool):
    deny = ["10.0.0.0/8", "169.254.0.0/16"]
    Reader(carpool(egress={"deny": deny})).follow("docs/leaving.md", "smokescreen")

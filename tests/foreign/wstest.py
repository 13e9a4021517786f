"""A program for Python 2.7, which Autobahn's testsuite needs: one of its four roles, told by an argument of JSON. `through` is a proxy
by CONNECT; `absolute` is the port of a proxy that gets its requests in absolute form, of which the suite knows nothing."""
import imp
import json
import os
import sys
import types

# No case uses TLS, and the package's own start would load programs that need more packages.
TLS = types.ModuleType("twisted.internet.ssl")
TLS.ClientContextFactory = lambda: None
sys.modules["twisted.internet.ssl"] = TLS
FOLDER = imp.find_module("autobahntestsuite")[1]
SUITE = types.ModuleType("autobahntestsuite")
SUITE.__path__, SUITE.__file__, SUITE.version = [FOLDER], os.path.join(FOLDER, "__init__.py"), ""
sys.modules["autobahntestsuite"] = SUITE

import twisted.internet  # noqa: E402
twisted.internet.ssl = TLS
import txaio  # noqa: E402
txaio.use_twisted()
from autobahn.websocket.protocol import WebSocketClientFactory  # noqa: E402
from autobahntestsuite import fuzzing, testee  # noqa: E402
from twisted.internet import reactor  # noqa: E402

GIVEN = json.loads(sys.argv[1])
set_session = WebSocketClientFactory.setSessionParameters


def set_session_through_a_proxy(self, url=None, *args, **more):
    set_session(self, url, *args, **more)
    if "through" in GIVEN:
        self.proxy = {"host": "127.0.0.1", "port": GIVEN["through"]}
    if "absolute" in GIVEN:
        self.resource = "http://127.0.0.1:%d%s" % (self.port, self.resource)
        self.port = GIVEN["absolute"]


WebSocketClientFactory.setSessionParameters = set_session_through_a_proxy
ROLES = {
    "fuzzing-client": lambda: fuzzing.startClient({"outdir": GIVEN["reports"], "servers": [{"agent": "peer", "url": GIVEN["url"]}],
                                                   "cases": GIVEN["cases"], "exclude-cases": GIVEN["without"]}),
    "fuzzing-server": lambda: fuzzing.startServer({"outdir": GIVEN["reports"], "url": GIVEN["url"],
                                                   "cases": GIVEN["cases"], "exclude-cases": GIVEN["without"]}, None),
    "echo-server": lambda: testee.startServer(GIVEN["url"]),
    "echo-client": lambda: testee.startClient(GIVEN["url"], ident="peer"),
}
ROLES[GIVEN["role"]]()
reactor.run()

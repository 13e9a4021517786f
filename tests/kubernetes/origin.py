"""An origin for the pods of the test: HTTP/1.1, kept alive, answers every GET with its own count of connections."""
import http.server
import itertools
import threading

connections = itertools.count(1)
seen = threading.local()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        seen.number = next(connections)

    def do_GET(self):
        body = b"connection %d\n" % seen.number
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Answer).serve_forever()

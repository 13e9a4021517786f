"""requests and httpx through carpool's Unix socket: unix SOCKET URL requests|httpx"""
import socket
import sys

path, url, library = sys.argv[1:]


def by_requests():
    import requests
    import urllib3
    from requests.adapters import HTTPAdapter

    class Connection(urllib3.connection.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(path)

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class ThroughSocket(HTTPAdapter):
        pool = Pool("carpool")

        def get_connection_with_tls_context(self, *_, **__):
            return self.pool

        def request_url(self, request, proxies):
            return request.url  # absolute form, as for any proxy

        def add_headers(self, request, **_):
            request.headers["Host"] = requests.utils.urlparse(request.url).netloc

    session = requests.Session()
    session.mount("http://", ThroughSocket())
    return session.get


def by_httpx():
    import httpx
    return httpx.Client(transport=httpx.HTTPTransport(uds=path)).get


get = by_requests() if library == "requests" else by_httpx()
for _ in range(3):
    response = get(url + "/" + library)
    print(response.status_code, response.text)

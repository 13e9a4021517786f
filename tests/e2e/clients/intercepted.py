"""requests and httpx with HTTPS_PROXY and the certificates of the environment: intercepted URL requests|httpx|httpx-h2"""
import sys

url, how = sys.argv[1:]


def with_requests(method, path, body=None):
    import requests
    response = requests.request(method, url + path, data=body, timeout=30)
    print(response.status_code, "HTTP/1", response.text)


def with_httpx(method, path, body=None):
    import httpx
    with httpx.Client(http2=how == "httpx-h2", timeout=30) as client:
        response = client.request(method, url + path, content=body)
        print(response.status_code, response.http_version.removesuffix(".1"), response.text)


ask = with_requests if how == "requests" else with_httpx
for _ in range(5):
    ask("GET", "/hello")
ask("POST", "/sink", b"x" * 100000)

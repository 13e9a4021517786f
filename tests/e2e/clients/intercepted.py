"""requests and httpx with HTTPS_PROXY and the certificates of the environment: intercepted URL requests|httpx|httpx-h2"""
import sys

url, how = sys.argv[1:]


def with_requests(method, path, body=None):
    import requests
    answer = requests.request(method, url + path, data=body, timeout=30)
    print(answer.status_code, "HTTP/1", answer.text)


def with_httpx(method, path, body=None):
    import httpx
    with httpx.Client(http2=how == "httpx-h2", timeout=30) as client:
        answer = client.request(method, url + path, content=body)
        print(answer.status_code, answer.http_version.removesuffix(".1"), answer.text)


ask = with_requests if how == "requests" else with_httpx
for _ in range(5):
    ask("GET", "/hello")
ask("POST", "/sink", b"x" * 100000)

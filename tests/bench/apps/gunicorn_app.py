"""The scene's request to an application: one https call, without a session, by requests. The response: "ok" or the error, and
milliseconds."""
import os
import time

import requests


def app(environ, start_response):
    began = time.perf_counter()
    try:
        response = requests.get(os.environ["TARGET"], timeout=30)
        said = "ok" if response.text == "hello\n" else "status %d" % response.status_code
    except requests.RequestException as error:
        said = type(error).__name__
    took = (time.perf_counter() - began) * 1000
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [("%s %.3f" % (said.replace(" ", "-"), took)).encode()]

"""The live page in a browser of each test."""
import pytest

from harness import browser as browser_module


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser_module.program() is None:
        pytest.skip("no Chromium is installed")
    one = browser_module.Chromium(tmp_path_factory.mktemp("browser"))
    yield one
    one.stop()


@pytest.fixture
def browser(chromium):
    one = browser_module.Browser(chromium)
    yield one
    one.stop()


def open_page(browser, c):
    browser.go("http://127.0.0.1:%d/" % c.admin_address[1])
    browser.see("document.getElementById('state')?.textContent === 'ready'")


def served(client, url, count=1):
    for _ in range(count):
        assert client.get(url).status == 200

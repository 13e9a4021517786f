"""The live page in a real browser: it loads under its own policy, shows events, and its buttons work."""
import os
import pathlib

import pytest
from harness import browser as browser_module
from harness.origin import Gate
from harness.wait import until


@pytest.fixture
def browser(tmp_path_factory):
    if browser_module.program() is None:
        pytest.skip("no Chromium is installed")
    one = browser_module.Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.stop()


def open_page(browser, c):
    browser.go("http://127.0.0.1:%d/" % c.admin_address[1])
    browser.see("document.getElementById('state')?.textContent === 'ready'")


def test_it_shows_connections_as_they_come_and_are_used(browser, origin, carpool):
    gate = Gate()

    def held(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool(pool={"size": 2, "wait_timeout": "30s"})
    open_page(browser, c)
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.__enter__()
        client.ask("GET", o.url + "/")
    browser.see("document.querySelectorAll('.cells .c.borrowed').length === 2")
    browser.see("document.querySelector('.wait')?.textContent.includes('1 request waiting')")
    gate.open()
    for client in clients:
        assert client.response().status == 200
    browser.see("document.querySelectorAll('.cells .c.idle').length === 2 && !document.querySelector('.wait')")
    box = browser.run("(() => { const r = document.querySelector('.cells .c.idle').getBoundingClientRect(); return [r.x + 4, r.y + 4]; })()")
    browser.move(*box)
    browser.see("document.getElementById('tip').textContent.includes('%s')" % o.authority)
    for client in clients:
        client.__exit__(None, None, None)
    assert browser.problems == []


def test_a_button_asks_first_and_then_acts(browser, origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/")
    open_page(browser, c)
    browser.see("document.querySelectorAll('.pool').length === 1")
    browser.click(".pool .open")
    browser.click("[data-act=drain]")
    browser.see("document.getElementById('ask').open")
    browser.click("#ask button[value=no]")
    browser.see("!document.getElementById('ask').open && document.getElementById('say').textContent === ''")
    browser.click("[data-act=drain]")
    browser.click("#yes")
    browser.see("document.getElementById('say').textContent.startsWith('drain %s: ')" % o.url)
    assert [p for p in browser.problems if "501" not in p] == []


def test_a_paused_pool_is_shown_and_a_click_resumes_it(browser, origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        open_page(browser, c)
        browser.see("document.querySelectorAll('.pool').length === 1")
        browser.click(".pool .open")
        browser.click("[data-act=pause]")
        browser.click("#yes")
        browser.see("document.getElementById('say').textContent.startsWith('pause %s: ')" % o.url)
        client.ask("GET", o.url + "/")
        browser.see("document.querySelector('.wait') && document.querySelector('.wait').textContent.includes('1')")
        browser.see("document.querySelector('.pool .tag').textContent === 'paused' && document.querySelector('[data-act=pause]').hidden")
        browser.click("[data-act=resume]")
        browser.click("#yes")
        browser.see("document.getElementById('say').textContent.startsWith('resume %s: ')" % o.url)
        assert client.response().status == 200
        browser.see("!document.querySelector('.wait') && document.querySelector('.pool .tag').hidden")
        browser.click("[data-act=drain]")
        browser.see("document.getElementById('question').textContent.includes('wait_timeout, until it is resumed')")
        browser.run("document.getElementById('for').value = '10m'")
        browser.click("#yes")
        browser.see("/^draining, resumes in (10|9) min$/.test(document.querySelector('.pool .tag').textContent)")
    assert browser.problems == []


def test_search_and_keyboard_find_an_origin(browser, origin, carpool):
    origins = [origin() for _ in range(4)]
    c = carpool()
    with c.client() as client:
        for o in origins:
            client.get(o.url + "/")
    open_page(browser, c)
    browser.see("document.querySelectorAll('.pool').length === 4")
    browser.press("/", "/")
    for letter in str(origins[2].port):
        browser.press(letter, letter)
    browser.see("[...document.querySelectorAll('.pool')].filter(p => !p.hidden).map(p => p.getAttribute('aria-label')).join() === '%s'" % origins[2].url)
    browser.press("Escape")
    browser.see("[...document.querySelectorAll('.pool')].every(p => !p.hidden)")
    browser.press("j", "j")
    browser.see("document.activeElement.closest('.pool') !== null")
    assert browser.problems == []


def test_it_says_when_the_program_is_gone_and_comes_back(browser, carpool):
    c = carpool()
    open_page(browser, c)
    c.stop()
    browser.see("document.getElementById('state').textContent === 'no connection'")
    c.start()
    browser.see("document.getElementById('state').textContent === 'ready'", 30)


def test_two_hundred_origins_and_a_thousand_connections_are_shown(browser, carpool, origin):
    gate = Gate()

    def held(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    busy = [origin(held) for _ in range(10)]
    quiet = [origin() for _ in range(190)]
    c = carpool(pool={"size": 100}, metrics={"max_origins": 300})
    open_page(browser, c)
    clients = []
    with c.client() as client:
        for o in quiet:
            client.get(o.url + "/")
    for o in busy:
        for _ in range(81):
            client = c.client()
            client.ask("GET", o.url + "/")
            clients.append(client)
    browser.see("document.querySelectorAll('.pool').length === 200", 30)
    browser.see("document.querySelectorAll('.cells .c:not(.room)').length === 1000", 30)
    took = browser.run("(() => { const t = performance.now(); arrange(); for (const p of pools.values()) show(p); return performance.now() - t; })()")
    assert took < 1000, took
    gate.open()
    until(lambda: browser.run("document.querySelectorAll('.cells .c.borrowed').length") == 0, 20, "all idle")
    for client in clients:
        client.close()
    assert browser.problems == []


PICTURES = pathlib.Path(__file__).parents[2] / "docs/images"


@pytest.mark.parametrize("count", [3, 50, 200])
def test_it_fits_the_window_whatever_it_shows(browser, origin, carpool, count):
    """No row is cut off or scrolls sideways. CARPOOL_UPDATE_IMAGES=1 keeps the screenshots as the pictures in docs/."""
    gate = Gate()

    def held(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    slow, quick = origin(held), origin()
    names = ["http://%s-%02d.example" % (("payments", "search", "users", "orders", "images")[i % 5], i) for i in range(count)]
    busy = names[:: max(3, count // 10)]
    c = carpool(pool={"size": 16, "wait_timeout": "60s"}, log={"access": False}, metrics={"max_origins": 300},
                origin=[{"uri": n, "addresses": [(slow if n in busy else quick).authority]} for n in names])
    open_page(browser, c)
    clients = []
    for i, name in enumerate(names):
        for _ in range(20 if name == busy[0] else 3 + i % 9 if name in busy else 0):
            clients.append(c.client())
            clients[-1].ask("GET", name + "/")
    with c.client() as client:
        for _ in range(3):
            for name in set(names) - set(busy):
                assert client.get(name + "/").status == 200
    browser.see("document.querySelectorAll('.pool').length === %d" % count, 30)
    browser.see("document.querySelector('.wait')?.textContent.includes('4 requests waiting')", 30)
    if count == 3:
        browser.run("document.querySelector('.pool .open').click()")
        browser.see("document.querySelectorAll('.opened table').length === 4")
    else:
        browser.run("(() => { const s = document.getElementById('sort'); s.value = 'busy'; s.dispatchEvent(new Event('change')); })()")
        browser.see("document.querySelector('.pool .c.borrowed') && document.querySelector('.pool').textContent.includes(%r)" % busy[0])
    if os.environ.get("CARPOOL_UPDATE_IMAGES"):
        browser.screenshot(PICTURES / ("page-%d-origins.png" % count))
    for width in (1280, 700):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        wide = browser.run("[...document.querySelectorAll('.pool, header, footer')].filter(e => e.scrollWidth > innerWidth).length")
        assert wide == 0 and browser.run("document.documentElement.scrollWidth <= innerWidth"), width
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    assert browser.problems == []

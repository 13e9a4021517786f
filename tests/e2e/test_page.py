"""The live page in a real browser: it loads under its own policy, shows events, and its buttons work."""
import contextlib
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

import pytest
from harness.carpool import ROOT
from harness.origin import Gate
from harness.page import browser, chromium, open_page, served  # noqa: F401 (browser and chromium are fixtures)
from harness.ports import free_port
from harness.wait import until

TOOLS = ROOT / "build/tools"


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
    o, c = origin(), carpool(pool={"wait_timeout": "60s"})
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


def test_it_says_why_there_is_no_origin(browser, origin, carpool):
    o, c = origin(), carpool()
    open_page(browser, c)
    browser.see("/^No origin has a pool yet/.test(document.getElementById('none').textContent)")
    with c.client() as client:
        client.get(o.url + "/")
    browser.see("document.querySelectorAll('.pool').length === 1 && document.getElementById('none').textContent === ''")
    browser.press("/", "/")
    for letter in "nobody":
        browser.press(letter, letter)
    browser.see("document.getElementById('none').textContent === 'No origin contains “nobody”.'")
    browser.press("Escape")
    browser.see("document.getElementById('none').textContent === ''")
    assert browser.problems == []


def test_escape_leaves_the_order_of_the_origins_as_it_is(browser, carpool):
    open_page(browser, carpool())
    browser.run("document.getElementById('sort').focus()")
    browser.press("Escape")
    browser.see("document.activeElement === document.body && document.getElementById('sort').value === 'name'")


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
    # As long as it takes to make some thousands of elements, on whatever machine: the least of several times, of both.
    took, made = browser.run("""(() => {
        const timed = (work) => { const t = performance.now(); work(); return performance.now() - t; };
        const least = (work) => Math.min(...Array.from({length: 7}, () => timed(work)));
        const make = () => { const top = document.createElement('div'); for (let n = 0; n < 5000; n++)
            top.appendChild(document.createElement('i')).textContent = n; };
        return [least(() => { arrange(); for (const p of pools.values()) show(p); }), least(make)];
    })()""")
    print("arranged and shown in %.1f ms; 5,000 elements made in %.1f ms" % (took, made))
    assert took < 20 * max(made, 1), (took, made)
    gate.open()
    until(lambda: browser.run("document.querySelectorAll('.cells .c.borrowed').length") == 0, 20, "all idle")
    for client in clients:
        client.close()
    assert browser.problems == []


PICTURES = pathlib.Path(__file__).parents[2] / "docs/images"
RENEWS = bool(os.environ.get("CARPOOL_UPDATE_IMAGES"))
SEEN = 24  # points of a picture's plots, three seconds each


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
    if RENEWS and count == 50:
        with traffic(c, *(name + "/" for name in set(names) - set(busy))):
            until(lambda: browser.run("whole.history.at.length") > 16, 60, "points of the plots")
            browser.screenshot(PICTURES / "page-50-origins.png")
    for width in (1280, 700):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        wide = browser.run("[...document.querySelectorAll('.pool, header, footer')].filter(e => e.scrollWidth > innerWidth).length")
        assert wide == 0 and browser.run("document.documentElement.scrollWidth <= innerWidth"), width
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    assert browser.problems == []


def axe():
    """axe-core, installed by npm once."""
    script = TOOLS / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            pytest.skip("there is no npm to install axe-core")
        TOOLS.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", TOOLS, "axe-core"], timeout=120, check=False)
        if not script.exists():
            pytest.skip("axe-core cannot be installed")
    return script.read_text()


@pytest.fixture
def shown(browser, origin, carpool):
    """A page with an origin that works, one that is paused and one that always fails; the first one is opened."""
    good, quiet, nobody = "http://orders.example", "http://inventory.example", "http://billing.example"
    there = {good: origin(busy_at_times).authority, quiet: origin().authority, nobody: "127.0.0.1:%d" % free_port()}
    c = carpool(pool={"size": 6, "wait_timeout": "60s"}, origin=[{"uri": uri, "addresses": [address]} for uri, address in there.items()])
    with c.client() as client:
        served(client, good + "/", 20)
        served(client, quiet + "/")
        assert c.admin("POST", "/pools/%s/pause" % quiet.replace(":", "%3A").replace("/", "%2F")).status == 200
        open_page(browser, c)
        with contextlib.ExitStack() as load:
            if RENEWS:
                load.enter_context(traffic(c, good + "/"))
                load.enter_context(traffic(c, nobody + "/", clients=1, pause=0.4, status=502))
            for _ in range(5):
                assert client.get(nobody + "/").status == 502
            browser.see("document.querySelectorAll('.pool').length === 3")
            browser.run("pools.get('%s').toggle()" % good)
            until(lambda: served(client, good + "/", 5) or browser.run("whole.history.at.length") > 2, 20, "three samples")
            if RENEWS:
                until(lambda: browser.run("whole.history.at.length") > SEEN, 5 * SEEN, "a minute of points")
            yield good, quiet, nobody


def busy_at_times(exchange):
    """Responds after some milliseconds when a picture is taken."""
    exchange.read_body()
    if RENEWS:
        threading.Event().wait(random.uniform(0.004, 0.02) if random.random() < 0.97 else 0.06)
    exchange.reply()


@contextlib.contextmanager
def traffic(c, *urls, clients=10, pause=0.03, status=200):
    """Requests that arrive in waves, at times more than the pool's connections."""
    stop, began = threading.Event(), time.monotonic()

    def ask(number):
        with c.client() as client:
            while not stop.wait(random.uniform(0, pause)):
                if number <= 5 + 4 * math.sin((time.monotonic() - began) / 6):
                    assert client.get(random.choice(urls)).status == status
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in threads:
            one.join()


def test_plots_show_all_origins_and_each(browser, shown):
    good, _, _ = shown
    browser.see("document.querySelectorAll('#all canvas').length === 4 && document.querySelectorAll('.opened canvas').length === 4")
    titles = browser.run("[...document.querySelectorAll('#all h2')].map(h => h.textContent)")
    assert titles == ["requests per second", "time of a request", "requests waiting", "connections"]
    told = browser.run("[...document.querySelectorAll('#all .plot p')].map(p => p.textContent)")
    assert "all" in told[0] and "failed" in told[0] and "p50" in told[1] and "p99" in told[1] and "open" in told[3], told
    most = browser.run("Math.max(...whole.history.rate)")
    slowest = browser.run("Math.max(...pools.get('%s').history.p99.filter(v => v !== null))" % good)
    assert most > 0 and 0 < slowest < 60, (most, slowest)
    browser.see("(() => { const c = document.querySelector('#all canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                " return d.some(v => v !== 0); })()")
    assert browser.problems == []


def test_what_is_counted_now_is_the_same_above_the_plots_and_in_the_rows(browser, origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        served(client, o.url + "/")
        open_page(browser, c)
        browser.see("document.querySelectorAll('#all .plot b').length === 7 && pools.size === 1")
        browser.run("pools.values().next().value.toggle()")
        browser.see("document.querySelectorAll('.opened .plot b').length === 7")
        told = browser.run("(() => { const pool = pools.values().next().value; pool.data = { ...pool.data, waiting: 77, borrowed: 55 };"
                           " show(pool); totals({ not_ready: [], version: '' }); repaint();"
                           " return ['#totals', '#all', '.opened .plots'].map(s => document.querySelector(s).textContent); })()")
    assert "55 busy · 77 waiting" in told[0], told
    assert all("waiting 77" in one and "busy 55" in one for one in told[1:]), told
    assert browser.problems == []


def test_a_page_opened_later_shows_what_was_before(browser, origin, carpool):
    o, dead, c = origin(), "http://127.0.0.1:%d" % free_port(), carpool()
    with c.client() as client:
        def asked():
            served(client, o.url + "/", 5)
            assert client.get(dead + "/").status == 502
            return len(c.get_json("/history?origin=" + o.url)["ago_seconds"])
        until(lambda: asked() >= 2, 30, "two points")
    past = c.get_json("/history")
    assert past["every_seconds"] == 5 and max(past["requests_per_second"]) > 1 and max(past["failed_per_second"]) > 0, past
    assert past["ago_seconds"] == sorted(past["ago_seconds"], reverse=True)
    open_page(browser, c)
    browser.see("whole.history.at.length >= 2 && Math.max(...whole.history.rate) > 1 && Math.max(...whole.history.failed) > 0")
    browser.run("pools.get('%s').toggle()" % o.url)
    browser.see("Math.max(...pools.get('%s').history.rate) > 1" % o.url)
    browser.see("document.querySelector('.pool.fails .why')?.textContent.includes('in the last 15 seconds, connections are refused')")
    assert c.admin("GET", "/history?origin=http://never.example").status == 404
    assert browser.problems == []


def test_quantiles_are_within_the_buckets(browser, shown):
    assert browser.run("quantile([], 0.5)") is None
    assert browser.run("quantile([0, 0, 0, 10], 0.5)") == pytest.approx(0.00075)
    assert browser.run("quantile([90, 0, 0, 10], 0.99)") == pytest.approx(0.00095)
    assert browser.run("quantile(Array(18).fill(0).concat([3]), 0.5)") == 60


def test_the_axis_of_a_plot_without_values_has_marks_that_differ_and_few_values_are_dots(browser, carpool):
    open_page(browser, carpool())
    assert browser.run("PLOTS.map(([title, , show, least]) => [show(0), show(ceiling(null, least) / 1.1)])") == [
        ["0", "1.0"], ["0", "1.0 ms"], ["0", "1"], ["0", "1"]]
    assert browser.run("[[60, 3], [72, 3], [72, 1], [200, 3], [900, 3], [900, 1]].map(([s, most]) => marks(0, s, most).map(t => s - t))") == [
        [60, 30, 0], [60, 30, 0], [60, 0], [180, 120, 60, 0], [900, 600, 300, 0], [600, 0]]
    assert browser.run("[[1, 2], [1, 2, 3]].map(at => dotted({ data: [at] }))") == [True, False]


def test_an_origin_that_only_fails_looks_like_it_and_says_why(browser, shown):
    good, quiet, nobody = shown
    classes = dict(browser.run("[...document.querySelectorAll('.pool')].map(p => [p.getAttribute('aria-label'), p.className])"))
    assert "fails" in classes[nobody] and "fails" not in classes[good] and "fails" not in classes[quiet], classes
    tags = dict(browser.run("[...document.querySelectorAll('.pool')].map(p => [p.getAttribute('aria-label'), "
                            "[...p.querySelectorAll('.tag')].filter(t => !t.hidden).map(t => t.textContent)])"))
    assert tags[quiet] == ["paused"] and tags[good] == []
    assert tags[nobody] == ["failing"]
    if not RENEWS:  # a sample that comes late counts fewer in the same time
        browser.see(r"/^([45]) of \1 requests failed in the last /.test(document.querySelector('.fails .why')?.textContent)")
    assert browser.run("document.querySelector('.fails .why').textContent").endswith(", connections are refused")
    failing = {"requests": 1234, "failed": 1200, "last_seconds": 15, "reason": None}
    for change, told in [({}, "1,200 of 1,234 requests failed in the last 15 seconds"),
                         ({"last_seconds": 60, "reason": "dns"}, "1,200 of 1,234 requests failed in the last minute, the name is not resolved"),
                         ({"last_seconds": None}, "1,200 of 1,234 requests failed"),
                         ({"requests": 0, "failed": 0, "reason": "tls"}, "the last dial failed: TLS fails")]:
        pool = {"data": {"failing": failing | change, "failures": {"refused": 9}}}
        assert browser.run("why_failing(%s)" % json.dumps(pool)) == told, "an earlier reason is not the reason of now"


def test_on_a_phone_nothing_scrolls_sideways_and_an_origin_is_one_row(browser, shown):
    browser.run("pools.values().next().value.toggle()")  # closed again
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.see("innerWidth === 390 && document.documentElement.scrollWidth <= 390")
    heights = browser.run("[...document.querySelectorAll('.row')].map(r => r.getBoundingClientRect().height)")
    assert len(heights) == 3 and max(heights) < 48, heights
    for label in browser.run("[...pools.keys()]"):
        browser.run("pools.get('%s').toggle()" % label)
    browser.see("document.documentElement.scrollWidth <= 390")


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_axe_finds_nothing(browser, shown, look):
    """CARPOOL_UPDATE_IMAGES=1 keeps the screenshots as pictures in docs/."""
    script = axe()
    browser.dark(look == "dark")
    if look == "phone":
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.run(script + "; 0")
    found = browser.run("axe.run().then(r => r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 200) + n.failureSummary)]))")
    assert found == [], found
    assert browser.run("axe.run().then(r => r.passes.length)") > 15, "it has looked"
    if RENEWS:
        browser.screenshot(PICTURES / ("page-%s.png" % look))


def test_words_stand_for_the_modes_of_execution(browser, carpool):
    open_page(browser, carpool())
    browser.see("document.getElementById('threads').textContent.startsWith('threads: ')")
    text = browser.run("document.body.innerText")
    assert not any(" %s" % mode in text for mode in ("pc ", "pic ", "pec ", "epc ")) and "here" not in text.split(), text
    assert browser.run("MODE.pic") == "run in place, no thread free", "as the help of carpool_exec_tasks_total"


@pytest.mark.parametrize("wrong, token", [("wrong", "a-long-secret"), ("пароль", "ein-längeres-Geheimnis-€")])
def test_an_admin_beyond_loopback_asks_for_its_token(browser, origin, carpool, tmp_path, wrong, token):
    (tmp_path / "token").write_text(token + "\n", encoding="utf-8")
    o = origin()
    c = carpool(admin={"address": "0.0.0.0:%d" % free_port(), "token_file": str(tmp_path / "token")})
    port = int(next(line for line in c.output if "carpool ready" in line).rsplit("admin=", 1)[1].split()[0].rsplit(":", 1)[1])
    with c.client() as client:
        served(client, o.url + "/")
    browser.go("http://127.0.0.1:%d/" % port)
    browser.see("document.getElementById('login')?.open && document.getElementById('state').textContent === 'log in'")
    assert o.url not in browser.run("document.documentElement.outerHTML"), "the page itself tells nothing"
    for text, check in ((wrong, "document.getElementById('login').open && document.getElementById('wrong').textContent.includes('not accepted')"),
                        (token, "document.getElementById('state').textContent === 'ready'")):
        browser.run("document.getElementById('token').value = '%s'" % text)
        browser.click("#login button")
        browser.see(check)
    browser.see("document.querySelectorAll('.pool').length === 1")
    browser.run("pools.values().next().value.toggle()")
    browser.click("[data-act=pause]")
    browser.click("#yes")
    browser.see("document.querySelector('.pool .tag').textContent === 'paused'")
    browser.go("http://127.0.0.1:%d/" % port)  # the tab remembers it
    browser.see("document.getElementById('state')?.textContent === 'ready'")
    assert [p for p in browser.problems if "401" not in p] == []

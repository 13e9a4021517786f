"""The live page and its connection to the program: what it says while it gets no events, and what it keeps when they come again."""
import contextlib
import signal
import socket

from harness.page import browser, chromium, open_page, served  # noqa: F401 (browser and chromium are fixtures)


def test_it_says_when_the_program_is_gone_and_comes_back(browser, carpool):
    c = carpool()
    open_page(browser, c)
    c.stop()
    browser.see("document.getElementById('state').textContent === 'no connection'")
    c.start()
    browser.see("document.getElementById('state').textContent === 'ready'", 30)


def test_it_says_when_the_program_hangs(browser, carpool):
    c = carpool()
    open_page(browser, c)
    c.process.send_signal(signal.SIGSTOP)
    try:
        browser.see("document.getElementById('state').textContent === 'no answer for 10 s'", 30)
    finally:
        c.process.send_signal(signal.SIGCONT)
    browser.see("document.getElementById('state').textContent === 'ready'", 30)


def test_it_says_why_it_gets_no_events(browser, carpool):
    c = carpool()
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            other = stack.enter_context(socket.create_connection(c.admin_address, 20))
            other.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert other.recv(12) == b"HTTP/1.1 200"
        browser.go("http://127.0.0.1:%d/" % c.admin_address[1])
        browser.see("document.getElementById('state')?.textContent === 'too many clients of /events'")
    browser.see("document.getElementById('state').textContent === 'ready'", 30)


def test_counts_since_the_page_was_loaded_begin_anew_with_the_program(browser, origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "pool": {"min_idle": 1}}])  # the pool is there when the page connects again
    with c.client() as client:
        for _ in range(9):
            served(client, o.url + "/")
    open_page(browser, c)
    browser.see("document.querySelectorAll('.pool').length === 1")
    browser.run("pools.values().next().value.toggle()")
    c.stop()
    browser.see("document.getElementById('state').textContent === 'no connection'")
    c.start()
    with c.client() as client:
        served(client, o.url + "/")
    browser.see("[...document.querySelectorAll('.tables tr')].some(r => r.innerText === 'borrows\\t1\\t+1')", 30)
    assert "-" not in browser.run("document.querySelector('.tables').innerText")


def test_the_description_of_a_connection_goes_with_its_origin(browser, origin, carpool):
    o, c = origin(), carpool(pool={"idle_timeout": "6s", "total": {"origin_idle_timeout": "7s"}})
    with c.client() as client:
        served(client, o.url + "/")
    open_page(browser, c)
    browser.see("document.querySelectorAll('.cells .c.idle').length === 1")
    browser.run("tip(pools.values().next().value, 0, 100, 100)")
    browser.see("document.getElementById('tip').style.display === 'block'")
    browser.see("document.querySelectorAll('.pool').length === 0 && document.getElementById('tip').style.display === 'none'", 30)

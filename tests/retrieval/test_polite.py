"""A good guest on the web: what it waits for, what it gives up on, and what it keeps."""

import gzip

import pytest

from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.transfer import retry_after
from retrieval.web_server import cut_off, dripping, html, silent, then

ANY = ("html", "pdf", "text")
NOT_FOUND, BUSY, BROKEN = (404, {}, b"gone"), (429, {"Retry-After": "7"}, b""), (500, {}, b"")


def said(client, url, **options):
    with pytest.raises(SourceError) as caught:
        client.get(url, kinds=ANY, **options)
    assert caught.value.where == url
    return caught.value.reason


def test_a_page_comes_with_its_address_type_charset_and_date(web, make_client):
    web.pages["/moved"] = (301, {"Location": "/a"}, b"")
    web.pages["/a"] = html("<p>Text</p>")
    page = make_client(now=lambda: 1_800_000_000.0).get(web.url("/moved"), kinds=ANY)
    assert (page.url, page.final_url) == (web.url("/moved"), web.url("/a"))
    assert (page.content_type, page.charset, page.fetched) == ("text/html", "utf-8", "2027-01-15")
    assert b"Text" in page.content


def test_the_user_agent_names_the_program_and_whom_to_reach(web, make_client):
    web.pages["/a"] = html("<p>x</p>")
    make_client(contact="me@example.org").get(web.url("/a"), kinds=ANY)
    agent = web.asked[0][1]["User-Agent"]
    assert agent.startswith("dspy-mama/")
    assert "(me@example.org)" in agent


def test_retry_after_is_waited_for_and_the_page_comes(web, make_client):
    web.pages["/a"] = then(BUSY, html("<p>at last</p>"))
    client = make_client()
    assert b"at last" in client.get(web.url("/a"), kinds=ANY).content
    assert client.waits == [7.0]


def test_a_server_error_is_tried_again_with_longer_waits(web, make_client):
    web.pages["/a"] = then(BROKEN, BROKEN, BROKEN, html("<p>ok</p>"))
    client = make_client()
    client.get(web.url("/a"), kinds=ANY)
    assert len(client.waits) == 3
    assert client.waits == sorted(client.waits)
    assert 1 <= client.waits[0] <= 1.25
    assert 4 <= client.waits[2] <= 5


def test_a_server_that_asks_for_more_patience_than_allowed_is_left_for_later(web, make_client):
    web.pages["/a"] = (429, {"Retry-After": "3600"}, b"")
    client = make_client()
    assert "wait 3600 s" in said(client, web.url("/a"))
    assert client.waits == []
    assert web.count("/a") == 1


@pytest.mark.parametrize(
    ("script", "reason", "tries"),
    [
        (NOT_FOUND, "404 Not Found", 1),
        ((403, {}, b""), "set corpus.http.contact", 1),
        (BROKEN, "500 Internal Server Error (3 tries)", 3),
        (cut_off, "cut off or broken (3 tries)", 3),
        ((200, {"Content-Type": "text/html"}, b"  \n"), "empty", 1),
        ((200, {"Content-Type": "image/png"}, b"\x89PNG...."), "is image/png; expected html or pdf or text", 1),
        ((200, {}, b"\x00\x01\x02"), "of no declared type", 1),
        ((302, {"Location": "/a"}, b""), "redirects in a loop (more than 5)", 6),
        ((302, {"Location": "ftp://127.0.0.1/a"}, b""), "not http(s)", 1),
        ((200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, b"no gzip"), "cannot be read", 1),
    ],
)
def test_a_fault_names_the_page_and_what_is_wrong(web, make_client, script, reason, tries):
    web.pages["/a"] = script
    assert reason in said(make_client(retries=2), web.url("/a"))
    assert web.count("/a") == tries


def test_a_silent_server_times_out(web, make_client):
    web.pages["/a"] = silent
    client = make_client(timeout=0.1, retries=1)
    assert "no answer within 0.1 s (2 tries)" in said(client, web.url("/a"))
    assert web.count("/a") == 2


def test_a_dripping_server_meets_the_deadline(web, make_client):
    web.pages["/a"] = dripping
    assert "still arriving after 0.2 s" in said(make_client(deadline=0.2), web.url("/a"))


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_page_is_left_as_soon_as_it_is_known(web, make_client, declared):
    body = b"x" * 300_000
    headers = {"Content-Type": "text/plain"}
    if not declared:  # small on the way, large when unpacked
        body = gzip.compress(body)
        headers["Content-Encoding"] = "gzip"
        assert len(body) < 100_000
    web.pages["/a"] = (200, headers, body)
    assert "larger than 100,000 bytes" in said(make_client(max_bytes=100_000), web.url("/a"))


def test_a_web_page_in_place_of_a_file_is_refused(web, make_client):
    web.pages["/guide.pdf"] = html("<p>Please log in</p>")
    assert "web page in place of the file" in said(make_client(), web.url("/guide.pdf"))


def test_a_host_that_never_answers_is_not_asked_for_ever(make_client):
    client = make_client(retries=0)
    for number in range(3):
        assert "could not be reached" in said(client, f"http://127.0.0.1:1/{number}")
    assert "not tried" in said(client, "http://127.0.0.1:1/4")
    assert client.traffic.requests == 3


def test_pages_come_from_the_cache_until_they_are_old_and_then_only_if_changed(web, make_client):
    clock = [1_000_000_000.0]
    seen = []

    def script(asked):
        seen.append(asked.headers.get("If-None-Match"))
        if asked.headers.get("If-None-Match") == '"v1"':
            return 304, {}, b""
        return html("<p>first</p>", ETag='"v1"')

    web.pages["/a"] = script
    first = make_client(now=lambda: clock[0]).get(web.url("/a"), kinds=ANY)
    clock[0] += 6 * 86_400
    client = make_client(now=lambda: clock[0])
    assert client.get(web.url("/a"), kinds=ANY) == first
    assert (client.traffic.requests, client.traffic.cached) == (0, 1)
    clock[0] += 2 * 86_400
    again = client.get(web.url("/a"), kinds=ANY)
    assert seen == [None, '"v1"']
    assert again.content == first.content
    assert (first.fetched, again.fetched) == ("2001-09-09", "2001-09-17")
    assert client.get(web.url("/a"), kinds=ANY) == again
    assert len(seen) == 2


def test_last_modified_serves_as_a_validator_too(web, make_client):
    stamp = "Sat, 01 Aug 2026 10:00:00 GMT"
    web.pages["/a"] = html("<p>x</p>", **{"Last-Modified": stamp})
    make_client(max_age=0).get(web.url("/a"), kinds=ANY)
    make_client(max_age=0).get(web.url("/a"), kinds=ANY)
    assert web.asked[1][1]["If-Modified-Since"] == stamp


def test_a_page_that_was_refused_is_not_kept(web, make_client):
    web.pages["/a"] = then((200, {"Content-Type": "image/png"}, b"png"), html("<p>ok</p>"))
    client = make_client()
    said(client, web.url("/a"))
    assert b"ok" in client.get(web.url("/a"), kinds=ANY).content


def test_a_damaged_cache_is_fetched_again(web, make_client, tmp_path):
    web.pages["/a"] = html("<p>whole</p>")
    make_client().get(web.url("/a"), kinds=ANY)
    (body,) = (tmp_path / "pages").rglob("*.body")
    body.write_bytes(body.read_bytes()[:20])
    assert b"whole" in make_client().get(web.url("/a"), kinds=ANY).content
    assert web.count("/a") == 2


def test_requests_to_a_host_keep_their_distance_and_never_meet(web, make_client):
    web.pages |= {f"/{number}": html("<p>x</p>") for number in range(4)}
    client = make_client(delay=2.5, now=lambda: 1_000.0)
    for number in range(4):
        client.get(web.url(f"/{number}"), kinds=ANY)
    assert client.waits == [2.5, 2.5, 2.5]
    assert web.most_in_flight == 1


def test_robots_txt_is_kept_to_and_read_once(web, make_client):
    rules = b"User-agent: dspy-mama\nDisallow: /private\nCrawl-delay: 9\n\nUser-agent: *\nDisallow: /\n"
    web.pages |= {"/robots.txt": (200, {"Content-Type": "text/plain"}, rules), "/a": html("<p>x</p>")}
    client = make_client(robots=True, now=lambda: 5.0)
    client.get(web.url("/a"), kinds=ANY)
    assert client.waits[-1] == 9.0
    assert "robots.txt" in said(client, web.url("/private/b"))
    assert web.count("/robots.txt") == 1
    assert web.count("/private/b") == 0
    said(client, web.url("/private/api"), api=True)
    assert web.count("/private/api") == 1


def test_without_robots_txt_all_may_be_read_and_with_a_broken_server_nothing(web, make_client):
    web.pages["/a"] = html("<p>x</p>")
    make_client(robots=True).get(web.url("/a"), kinds=ANY)
    web.pages["/robots.txt"] = (503, {}, b"")
    client = make_client(robots=True, retries=0, max_age=0)
    assert "robots.txt cannot be read" in said(client, web.url("/a"))
    said(client, web.url("/b"))
    assert web.count("/robots.txt") == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120.0), (" 0 ", 0.0), ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0), ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0)],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after(value, now=60.0) == seconds


@pytest.mark.parametrize("value", ["", "soon", "-5", "1.5"])
def test_retry_after_that_says_nothing_leaves_the_wait_to_us(value):
    assert retry_after(value, now=60.0) is None

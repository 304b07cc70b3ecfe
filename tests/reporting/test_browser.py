"""The report in a real headless browser: no error in its console, no request, and its controls work."""

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import signal
import subprocess

import aiohttp
import pytest

from dspy_mama.reporting import summarise, write_report
from dspy_mama.reporting.comparison import compare_systems, differing, share_rows
from dspy_mama.reporting.comparison_html import render_comparison
from dspy_mama.reporting.page import write_page
from dspy_mama.scoring import labels_from_records

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


class Browser:
    """As much of the DevTools protocol as these tests need."""

    def __init__(self, socket):
        self.socket, self.ids, self.events, self.replies = socket, itertools.count(1), [], {}
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        async for message in self.socket:
            data = message.json()
            if "id" in data:
                self.replies[data["id"]].set_result(data)
            else:
                self.events.append(data)

    async def send(self, method, **params):
        number = next(self.ids)
        self.replies[number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": number, "method": method, "params": params})
        reply = await asyncio.wait_for(self.replies[number], 30)
        assert "error" not in reply, reply
        return reply["result"]

    async def value(self, expression):
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key, code, text=None):
        keys = {"key": key, "windowsVirtualKeyCode": code} | ({"text": text} if text else {})
        await self.send("Input.dispatchKeyEvent", type="keyDown", **keys)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **keys)

    def named(self, method):
        return [event["params"] for event in self.events if event["method"] == method]


@contextlib.asynccontextmanager
async def browser_on(path, profile):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    process = subprocess.Popen(
        [CHROMIUM, *options, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port_file = profile / "DevToolsActivePort"
        for _ in range(300):
            if port_file.exists() and len(port_file.read_text().splitlines()) == 2:
                break
            assert process.poll() is None, "Chromium ended by itself"
            await asyncio.sleep(0.1)
        port = port_file.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                pages = await answer.json()
            target = next(page for page in pages if page["type"] == "page")["webSocketDebuggerUrl"]
            async with session.ws_connect(target, max_msg_size=0) as socket:
                browser = Browser(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await browser.send(f"{domain}.enable")
                await browser.send("Page.navigate", url=path.as_uri())
                for _ in range(300):
                    if browser.named("Page.loadEventFired"):
                        break
                    await asyncio.sleep(0.1)
                yield browser
                browser.reader.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def report(records, tmp_path):
    records[3]["answer"] = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    records[4]["question"] = "</div></details><svg onload='window.hacked = 1'>"
    return write_report(tmp_path / "report.html", records, summarise(records, resamples=50))


SHOWN = "[...document.querySelectorAll('#pairs > details')].filter((d) => !d.hidden)"
CHANGE = "document.getElementById('controls').dispatchEvent(new Event('input'))"


async def test_report_works_in_a_browser(report, records, tmp_path):
    async with browser_on(report, tmp_path / "profile") as browser:
        assert await browser.value(f"{SHOWN}.length") == 126
        assert await browser.value("document.getElementById('controls').hidden") is False

        await browser.value(f"document.querySelector('[name=wrong]').checked = true; {CHANGE}")
        opposite = {True: "safe", False: "risky"}
        wrong = sum(any(opposite[r["gold"][d]] == r["verdicts"][d] for d in r["gold"]) for r in records)
        assert await browser.value(f"{SHOWN}.length") == wrong
        assert await browser.value("document.getElementById('shown').textContent") == f"{wrong} of 126 pairs shown"

        await browser.value(f"document.querySelector('[name=sort]').value = 'errors'; {CHANGE}")
        errors = await browser.value(f"{SHOWN}.map((d) => Number(d.dataset.errors))")
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < errors[0]

        await browser.value("document.querySelector('[type=reset]').click()")
        await browser.value("new Promise((done) => setTimeout(done, 50))")
        await browser.value(f"document.querySelector('[name=text]').value = 'HEADACHE FOR 77 DAYS'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.map((d) => d.querySelector('.id').textContent)") == ["ja77"]

        await browser.value(f"{SHOWN}[0].querySelector('summary').focus()")
        await browser.press("Enter", 13, "\r")
        assert await browser.value(f"{SHOWN}[0].open") is True

        assert await browser.value("window.hacked === undefined") is True
        assert browser.named("Runtime.exceptionThrown") == []
        assert browser.named("Log.entryAdded") == []
        urls = [event["request"]["url"] for event in browser.named("Network.requestWillBeSent")]
        assert all(url.startswith(("data:", report.as_uri())) for url in urls)
        if folder := os.environ.get("MAMA_SCREENSHOTS"):
            await browser.send(
                "Emulation.setDeviceMetricsOverride", width=1280, height=1800, deviceScaleFactor=1, mobile=False
            )
            await browser.value(f"{SHOWN}[0].scrollIntoView()")
            await browser.value("document.getElementById('list').scrollIntoView()")
            picture = await browser.send("Page.captureScreenshot", format="png")
            with open(os.path.join(folder, "pair.png"), "wb") as stream:
                stream.write(base64.b64decode(picture["data"]))
            await browser.send(
                "Emulation.setDeviceMetricsOverride", width=390, height=1500, deviceScaleFactor=1, mobile=True
            )
            picture = await browser.send("Page.captureScreenshot", format="png")
            with open(os.path.join(folder, "narrow.png"), "wb") as stream:
                stream.write(base64.b64decode(picture["data"]))


async def test_an_override_can_be_filtered_and_the_page_stays_small(records, tmp_path):
    for number in (7, 9):
        records[number]["override"] = {"medical": {"risk": True, "by": "nurse"}}
    page = write_report(tmp_path / "report.html", records, summarise(records, resamples=50))
    assert page.stat().st_size < 5_000_000
    async with browser_on(page, tmp_path / "profile") as browser:
        await browser.value(f"document.querySelector('[name=override]').checked = true; {CHANGE}")
        assert await browser.value(f"{SHOWN}.map((d) => d.querySelector('.id').textContent)") == ["ja7", "ja9"]
        assert browser.named("Runtime.exceptionThrown") + browser.named("Log.entryAdded") == []


async def test_comparison_works_in_a_browser(records, tmp_path):
    records[3]["answer"] = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    systems = {phase: labels_from_records(records, phase) for phase in ("initial", "verification", "consensus")}
    texts = {name: {(record["id"], 0): record for record in records} for name in systems}
    found = render_comparison(compare_systems(systems, resamples=50), systems, texts)
    page = write_page(tmp_path / "comparison.html", found)
    assert page.stat().st_size < 5_000_000
    rows = share_rows(systems)
    differs = differing(rows)
    gold = rows["initial"].gold
    wrong = {name: (own.predicted >= 0) & (own.predicted != gold) for name, own in rows.items()}
    right = {name: own.predicted == gold for name, own in rows.items()}
    repaired = (differs & wrong["initial"] & right["consensus"]).any(axis=1).sum()
    async with browser_on(page, tmp_path / "profile") as browser:
        assert await browser.value(f"{SHOWN}.length") == differs.any(axis=1).sum()
        await browser.value(f"document.querySelector('[name=domain]').value = 'legal'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.length") == differs[:, 2].sum()
        await browser.value("document.querySelector('[type=reset]').click()")
        await browser.value("new Promise((done) => setTimeout(done, 50))")
        await browser.value("document.querySelector('[name=wrong]').value = '0'")
        await browser.value(f"document.querySelector('[name=right]').value = '2'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.length") == repaired
        assert 0 < repaired < differs.any(axis=1).sum()
        await browser.value(f"document.querySelector('[name=sort]').value = 'errors'; {CHANGE}")
        errors = await browser.value(f"{SHOWN}.map((d) => d.dataset.wrong.split(' ').length)")
        assert errors == sorted(errors, reverse=True)
        await browser.value(f"{SHOWN}[0].querySelector('summary').focus()")
        await browser.press("Enter", 13, "\r")
        assert await browser.value(f"{SHOWN}[0].open") is True
        assert await browser.value("window.hacked === undefined") is True
        assert browser.named("Runtime.exceptionThrown") + browser.named("Log.entryAdded") == []
        urls = [event["request"]["url"] for event in browser.named("Network.requestWillBeSent")]
        assert all(url.startswith(("data:", page.as_uri())) for url in urls)
        if folder := os.environ.get("MAMA_SCREENSHOTS"):
            await browser.send(
                "Emulation.setDeviceMetricsOverride", width=1280, height=2600, deviceScaleFactor=1, mobile=False
            )
            for name, place in (("compare_top", "summary"), ("compare_list", "list")):
                await browser.value(f"document.getElementById('{place}').scrollIntoView()")
                picture = await browser.send("Page.captureScreenshot", format="png")
                with open(os.path.join(folder, f"{name}.png"), "wb") as stream:
                    stream.write(base64.b64decode(picture["data"]))


async def test_without_javascript_every_pair_is_there(report, tmp_path):
    page = report.read_text(encoding="utf-8")
    plain = tmp_path / "plain.html"
    plain.write_text(page[: page.rindex("<script>")] + "</body></html>", encoding="utf-8")
    async with browser_on(plain, tmp_path / "profile") as browser:
        assert await browser.value(f"{SHOWN}.length") == 126
        assert await browser.value("getComputedStyle(document.getElementById('controls')).display") == "none"
        await browser.value("document.querySelector('#pairs summary').focus()")
        await browser.press("Enter", 13, "\r")
        assert await browser.value("document.querySelector('#pairs details').open") is True

"""The loop's report in a real headless browser: filters and orders work, nothing runs that should not."""

import pytest

from dspy_mama.reporting.refinement import summarise_loop
from dspy_mama.reporting.refinement_html import write_refinement
from reporting.refinement_records import records
from reporting.test_browser import CHANGE, CHROMIUM, SHOWN, browser_on

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


async def test_the_report_works_in_a_browser(tmp_path):
    rows = records()
    rows[1]["versions"][0]["text"] = "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
    rows[2]["question"] = "</div></details><svg onload='window.hacked = 1'>"
    page = write_refinement(tmp_path / "report.html", rows, summarise_loop(rows, resamples=50))
    async with browser_on(page, tmp_path / "profile") as browser:
        assert await browser.value(f"{SHOWN}.length") == 45
        await browser.value(f"document.querySelector('[name=status]').value = 'not converged'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.length") == 9
        assert await browser.value("document.getElementById('shown').textContent") == "9 of 45 answers shown"
        await browser.value("document.querySelector('[type=reset]').click()")
        await browser.value(f"document.querySelector('[name=sort]').value = 'ama'; {CHANGE}")
        found = await browser.value(f"{SHOWN}.map((item) => Number(item.dataset.ama))")
        assert found == sorted(found, reverse=True)
        await browser.value(f"document.querySelector('[name=principle]').value = 'IV'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.length") == 5
        await browser.value(f"document.querySelector('[name=text]').value = 'drug 12?'; {CHANGE}")
        assert await browser.value(f"{SHOWN}.map((item) => item.querySelector('.id').textContent)") == ["q12"]
        await browser.value("document.getElementById('open-all').click()")
        assert await browser.value(f"{SHOWN}.every((item) => item.open)")
        assert await browser.value("getComputedStyle(document.querySelector('ins')).textDecorationLine") == "underline"
        assert (
            await browser.value("getComputedStyle(document.querySelector('del')).textDecorationLine") == "line-through"
        )
        assert await browser.value("window.hacked") is None
        assert browser.named("Log.entryAdded") == []
        assert browser.named("Runtime.exceptionThrown") == []
        asked = {event["request"]["url"].split(":")[0] for event in browser.named("Network.requestWillBeSent")}
        assert asked <= {"file", "data"}

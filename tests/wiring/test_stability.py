"""Invariants: (1) k repeats are k calls, whatever is cached; (2) what is done is never asked for again; (3) a labeller
of known flip rate is found out; (4) nothing of one repeat reaches another.
"""

import collections
import csv
import json

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import content_hash
from dspy_mama.lm import roles
from dspy_mama.wiring import study
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.stability import grid, run_stability
from scripted import default_values, fields_of, kind_of, scripted_lm, user_of

ONE_CALL = ["system=baseline", "ablation=ek", "tracking=none", "runtime.progress=false", "experiment.resamples=400"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lm(monkeypatch):
    made = scripted_lm()
    monkeypatch.setattr(roles, "_embedded", lambda spec, sampling: made)
    return made


def pairs_file(folder, truth):
    path = folder / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = [[f"p{i}", f"Question number {i}?", f"Answer {i}.", risky, "FALSE"] for i, risky in enumerate(truth)]
        csv.writer(stream).writerows([["id", "question", "answer", "medical", "legal"], *rows])
    return ["data=table", f"data.path={path}"]


def chance(*parts):
    return int(content_hash("|".join(map(str, parts)), 8), 16) / 16**8


class Flipper:
    """Gives the true medical label but for a known share of its replies; it does not know which repeat it serves."""

    def __init__(self, truth, flip):
        self.truth = {f"Question number {i}?": risky for i, risky in enumerate(truth)}
        self.flip = flip
        self.asked = collections.Counter()

    def __call__(self, request):
        question = user_of(request).split("\n")[1]
        self.asked[question] += 1
        flipped = chance(question, self.asked[question], "flip") < self.flip
        return default_values(fields_of(request), risk=False) | {"medical_risk": self.truth[question] != flipped}


async def test_a_labeller_of_known_flip_rate_is_found_out(workplace, lm):
    truth, flip, repeats = [chance(i, "truth") < 0.4 for i in range(120)], 0.15, 5
    lm.engine.script = Flipper(truth, flip)
    settings = compose([*ONE_CALL, *pairs_file(workplace, truth)])
    result = await run_stability({"as given": settings}, repeats=repeats)
    assert len(lm.requests) == 120 * repeats
    share = sum(truth) / len(truth)
    risky = share * (1 - flip) + (1 - share) * flip
    by_chance = risky**2 + (1 - risky) ** 2
    kappa = ((1 - flip) ** 2 + flip**2 - by_chance) / (1 - by_chance)
    summary = result.settings[0].summary["stability"]
    own = summary["phases"]["initial"]["medical"]
    low, high = own["fleiss_kappa_ci95"]
    assert low <= kappa <= high
    assert high - low < 0.25
    low, high = own["flip_rate_ci95"]
    assert low <= 2 * flip * (1 - flip) <= high
    assert own["n"] == own["complete"] == 120
    assert summary["phases"]["final"]["legal"]["fleiss_kappa"] is None
    assert summary["phases"]["final"]["legal"]["flipped"] == 0
    spread = summary["metrics"]["final/medical/accuracy"]
    assert spread["n"] == repeats
    assert spread["min"] < spread["mean"] < spread["max"]
    assert spread["mean"] == pytest.approx(1 - flip, abs=0.05)  # 3.4 standard errors
    assert {flip["id"] for flip in summary["flips"]} <= {f"p{i}" for i in range(120)}


@pytest.mark.parametrize("temperature", ["0", "0.7"])
async def test_with_the_cache_on_k_repeats_are_k_calls_and_a_second_study_says_that_it_is_a_replay(
    workplace, lm, fresh_cache, temperature
):
    lm.cache, lm.kwargs["temperature"] = True, float(temperature)
    settings = {"as given": compose([*ONE_CALL, *pairs_file(workplace, [True, False, True])])}
    first = await run_stability(settings, repeats=4)
    assert len(lm.requests) == 12
    assert first.settings[0].summary["stability"]["cache_hits"] == 0
    second = await run_stability(settings, repeats=4)
    assert len(lm.requests) == 12
    assert second.settings[0].summary["stability"]["cache_hits"] == 12
    assert second.settings[0].folder != first.settings[0].folder


async def test_every_repeat_asks_for_the_specialist_anew_even_where_a_table_is_named(workplace, lm, caplog):
    overrides = ["system=baseline", "system.router.table=table.json", *ONE_CALL[2:], *pairs_file(workplace, [True] * 2)]
    result = await run_stability({"as given": compose(overrides)}, repeats=3)
    assert [kind_of(request) for request in lm.requests].count("routing") == 6
    assert not (workplace / "table.json").exists()
    assert "system.router.table is left aside" in caplog.text
    records = [json.loads(line) for line in (result.settings[0].folder / "records.jsonl").read_text().splitlines()]
    assert {record["routing"]["origin"] for record in records} == {"lm"}


async def test_a_stopped_study_goes_on_without_asking_again_and_completes_no_setting_too_early(
    workplace, lm, monkeypatch
):
    data = pairs_file(workplace, [True, False, True, False])
    named = grid([*ONE_CALL, *data, "runtime.concurrency=1"], ["lm.default.temperature=0,0.5"])
    audited = study.audit_record

    def stops_in_the_second_setting(pair, prediction):
        if len(lm.requests) == 18:
            raise DeclarationError("the wiring broke")
        return audited(pair, prediction)

    with monkeypatch.context() as patch:
        patch.setattr(study, "audit_record", stops_in_the_second_setting)
        with pytest.raises(DeclarationError, match="the wiring broke"):
            await run_stability(named, repeats=3)
    runs = sorted((workplace / "mlruns" / "runs").iterdir())
    assert len(runs) == 2
    assert not any((run / "summary.json").exists() for run in runs)
    result = await run_stability(named, repeats=3)
    assert len(lm.requests) == 24 + 1  # one reply was lost on its way into the records
    assert [(run.resumed, run.done) for run in result.settings] == [(12, 0), (5, 7)]
    assert {run.folder.resolve() for run in result.settings} == {run.resolve() for run in runs}
    names = ("spec.json", "records.jsonl", "summary.json", "program.json", "manifest.json", "report.html")
    assert all((run / name).exists() for run in runs for name in names)


async def test_records_carry_the_repeat_and_the_settings_are_compared(workplace, lm):
    data = pairs_file(workplace, [True, False])
    lm.engine.script = lambda r: default_values(fields_of(r), risk=len(lm.requests) <= 6)
    result = await run_stability(grid([*ONE_CALL, *data], ["lm.default.temperature=0,0.5"]), repeats=3)
    records = [json.loads(line) for line in (result.settings[0].folder / "records.jsonl").read_text().splitlines()]
    assert sorted((record["id"], record["repeat"]) for record in records) == [
        (name, repeat) for name in ("p0", "p1") for repeat in range(3)
    ]
    assert len({record["key"] for record in records}) == 6
    assert result.between["settings"] == ["lm.default.temperature=0", "lm.default.temperature=0.5"]
    assert result.between["domains"]["medical"]["flipped"] == 2
    assert result.settings[0].summary["stability"]["flips"] == []


async def test_the_run_is_reported_with_its_stability_and_rebuilt_from_records_alone(workplace, lm):
    lm.engine.script = Flipper([True, False, True, False], 0.3)
    settings = compose([*ONE_CALL, *pairs_file(workplace, [True, False, True, False])])
    run = (await run_stability({"as given": settings}, repeats=4)).settings[0]
    assert (run.folder / "figures" / "stability.png").exists()
    page = (run.folder / "report.html").read_text()
    assert "Stability of labels over repeats" in page
    assert "Agreement of repeats beyond chance" in page
    (run.folder / "summary.json").unlink()
    rebuilt, _ = study.rebuild_report(run.folder)
    assert rebuilt["stability"] == run.summary["stability"]


async def test_unreadable_replies_are_counted_and_fail_the_study(workplace, lm):
    lm.engine.script = lambda request: "I have no idea."
    result = await run_stability({"as given": compose([*ONE_CALL, *pairs_file(workplace, [True])])}, repeats=2)
    assert result.exit_code == 3
    own = result.settings[0].summary["stability"]["phases"]["final"]["medical"]
    assert (own["n"], own["missing"], own["flip_rate"]) == (0, 2, None)


async def test_mlflow_holds_the_study_its_settings_inside_it_and_their_repeats_inside_those(workplace, lm):
    from mlflow.tracking import MlflowClient

    overrides = [part for part in ONE_CALL if part != "tracking=none"]
    named = grid([*overrides, *pairs_file(workplace, [True, False])], ["lm.default.temperature=0,0.5"])
    result = await run_stability(named, repeats=2)
    assert result.problems == ()
    client = MlflowClient(f"sqlite:///{workplace / 'mlruns' / 'mlflow.db'}")
    outer = client.get_run(result.tracked)
    inside = client.search_runs([outer.info.experiment_id], f"tags.`mlflow.parentRunId` = '{result.tracked}'")
    assert {run.data.tags["setting"] for run in inside} == set(named)
    for run in inside:
        assert "stability/final/medical/flip_rate" in run.data.metrics
        assert run.data.metrics["spread/final/medical/accuracy_sd"] == 0
        assert "report.html" in {item.path for item in client.list_artifacts(run.info.run_id)}
        repeats = client.search_runs([outer.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.info.run_id}'")
        assert len(repeats) == 2
        assert all(repeat.data.metrics["final/medical/accuracy"] == 0.5 for repeat in repeats)


def test_a_grid_is_every_combination():
    named = grid(["tracking=none"], ["lm.default.temperature=0,0.7", "system.order_seed=null,1", "ablation=ma"])
    assert list(named) == [
        f"lm.default.temperature={t} system.order_seed={s} ablation=ma" for t in ("0", "0.7") for s in ("null", "1")
    ]
    assert {(s.lm.default.temperature, s.system.order_seed) for s in named.values()} == {
        (t, seed) for t in (0.0, 0.7) for seed in (None, 1)
    }


def test_a_comma_in_brackets_parts_no_values():
    assert list(grid([], ["data.ids=[s1,s2],[s3]"])) == ["data.ids=[s1,s2]", "data.ids=[s3]"]


@pytest.mark.parametrize("vary", [["system"], ["=1"], ["system.order_seed="], ["nonsense=1,2"]])
def test_what_is_no_axis_is_refused(vary):
    with pytest.raises(DeclarationError):
        grid([], vary)


@pytest.mark.parametrize("vary", [["system.order_seed=1,1"], ["runtime.concurrency=1,8"]])
def test_settings_that_ask_for_the_same_are_refused(vary):
    with pytest.raises(DeclarationError, match="the same as"):
        grid([], vary)


async def test_one_repeat_is_refused(workplace, lm):
    with pytest.raises(DeclarationError, match="at least 2"):
        await run_stability({"as given": compose(ONE_CALL)}, repeats=1)
    assert lm.requests == []

import json

from scripted import default_values, fields_of

SMALL = ["data.limit=3", "system=baseline", "ablation=ek", "experiment.resamples=100", "tracking=none"]


def test_json_holds_each_settings_stability_and_the_agreement_between_them(mama):
    code, out, err = mama("stability", "--repeats", "2", "--vary", "lm.default.temperature=0,0.5", *SMALL, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert list(document["settings"]) == ["lm.default.temperature=0", "lm.default.temperature=0.5"]
    for own in document["settings"].values():
        assert own["stability"]["repeats"] == 2
        assert set(own["stability"]["phases"]) == {"initial", "final"}
        assert own["done"] == 6
    assert set(document["between"]["domains"]) == {"medical", "ethical", "legal"}
    assert len(mama.requests) == 12


def test_the_tables_name_what_flips(mama):
    count = iter(range(1000))
    code, out, err = mama(
        "stability", "--repeats", "3", *SMALL,
        script=lambda request: default_values(fields_of(request), risk=next(count) < 3),
    )  # fmt: skip
    assert code == 0, err
    for part in (
        "Stability of labels over repeats",
        "Fleiss' kappa",
        "Pairs whose final label flips",
        "R s s",
        "as given",
    ):
        assert part in out


def test_bad_usage_is_exit_code_2_and_one_clear_line(mama):
    for arguments, said in (
        (["--repeats", "1"], "at least 2"),
        (["--vary", "system.order_seed"], "--vary"),
        (["--vary", "system.order_seed=1,1"], "the same as"),
        (["tracking=mlflow", "tracking.uri=file:./mlruns"], "migrate-filestore"),
        (["system=unknown", "--vary", "system.order_seed=1,2"], "baseline"),
    ):
        code, _, err = mama("stability", *SMALL, *arguments)
        assert code == 2
        assert said in err
        assert "Traceback" not in err
    assert mama.requests == []


def test_too_many_unscored_is_exit_code_3(mama):
    code, out, err = mama("stability", "--repeats", "2", *SMALL, "--json", script=lambda request: "no idea")
    assert code == 3
    assert json.loads(out)["exit_code"] == 3
    assert "unscored" in err

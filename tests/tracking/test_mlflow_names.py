import math

import pytest

from dspy_mama.tracking.mlflow_names import SlugMap, flatten, shorten, slug, usable


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MA+MPA", "MA_plus_MPA"),
        ("recall@5", "recall_at_5"),
        ("f1(medical)", "f1_medical"),
        ("consensus/legal/macro_f1", "consensus/legal/macro_f1"),
        ("../etc//x/", "etc/x"),
        ("医療 F1", "医療_F1"),
        ("95%", "95_percent"),
        ("?!", "unnamed"),
        ("a" * 300, "a" * 250),
    ],
)
def test_names_come_into_mlflows_alphabet(name, expected):
    assert slug(name) == expected


def test_two_names_never_share_a_slug():
    names = SlugMap()

    assert len({names["f1(a)"], names["f1[a]"], names["f1_a"]}) == 3
    assert names["f1(a)"] == "f1_a"
    assert set(names.changed.values()) >= {"f1(a)", "f1[a]"}


def test_none_nan_and_infinity_are_left_out_by_name():
    assert usable({"a": 1, "b": None, "c": math.nan, "d": math.inf, "e": True, "z": 0.0}) == (
        {"a": 1.0, "e": 1.0, "z": 0.0},
        ("b", "c", "d"),
    )


def test_settings_become_dotted_names():
    assert flatten({"lm": {"default": {"model": "m", "cache": False}, "roles": {}}, "ids": ["a"], "path": None}) == {
        "lm.default.model": "m",
        "lm.default.cache": "false",
        "lm.roles": "{}",
        "ids": '["a"]',
        "path": "null",
    }


def test_long_values_go_to_a_file_and_leave_their_hash():
    short, files = shorten({"prompt": "x" * 501, "model": "y" * 500})

    assert short["model"] == "y" * 500
    assert short["prompt"].startswith("sha256:")
    assert files == {"prompt.txt": "x" * 501}

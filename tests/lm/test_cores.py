import os

import pytest

from dspy_mama.lm.cores import usable_cores


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("150000 100000", 1), ("250000 100000", 2), ("max 100000", 4), ("900000 100000", 4), ("50000 100000", 1)],
)
def test_a_container_quota_is_rounded_down_to_whole_cores(tmp_path, four_cores, quota, expected):
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path) == expected


@pytest.mark.parametrize(("quota", "expected"), [("200000", 2), ("-1", 4)])
def test_the_older_control_groups_are_read_too(tmp_path, four_cores, quota, expected):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == expected


def test_without_a_quota_the_affinity_counts(tmp_path, four_cores):
    assert usable_cores(tmp_path) == 4

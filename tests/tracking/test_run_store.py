import dataclasses
import json
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
from tests.tracking.samples import record

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.settings import LMSettings, LMSpec, RuntimeSettings, Settings, TrackingSettings, to_mapping
from dspy_mama.tracking import RUN_FILES, RunStore, find_resumable, spec_hash


def spec(**groups):
    return {"name": "study", **to_mapping(dataclasses.replace(Settings(), **groups))}


def finish(store):
    for part in ("program", "manifest", "summary"):
        store.write(part, {"part": part})


def test_the_run_id_is_the_utc_time_and_the_specs_hash(tmp_path):
    store = RunStore.create(tmp_path, spec(), now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))

    assert store.run_id == f"20260102T030405Z-{spec_hash(spec())[:8]}"
    assert json.loads((store.folder / "spec.json").read_text())["name"] == "study"


def test_two_runs_of_one_second_get_folders_of_their_own(tmp_path):
    now = datetime(2026, 1, 2, tzinfo=UTC)

    ids = {RunStore.create(tmp_path, spec(), now=now).run_id for _ in range(3)}

    assert len(ids) == 3


def test_a_run_is_complete_when_all_five_files_are_there(tmp_path):
    with RunStore.create(tmp_path, spec()) as store:
        store.append(record())
        assert not store.is_complete
        finish(store)
        assert store.is_complete
        assert {p.name for p in store.folder.iterdir() if not p.name.startswith(".")} == set(RUN_FILES)


def test_settings_that_do_not_change_records_do_not_change_the_hash():
    lm = LMSettings(default=LMSpec(threads=2, timeout=9, num_retries=1, max_concurrency=3, price_input=2.0))
    other = spec(
        runtime=RuntimeSettings(concurrency=3, progress=False), tracking=TrackingSettings(root="x", traces=1.0), lm=lm
    )

    assert spec_hash(other) == spec_hash(spec())


@pytest.mark.parametrize(
    "change",
    [
        {"lm": LMSettings(default=LMSpec(temperature=0.3))},
        {"lm": LMSettings(roles={"judge": LMSpec()})},
        {"tracking": TrackingSettings(store_text=False)},
    ],
)
def test_settings_that_change_records_change_the_hash(change):
    assert spec_hash(spec(**change)) != spec_hash(spec())


def test_further_facts_of_the_spec_such_as_a_data_hash_count():
    assert spec_hash({**spec(), "facts": {"data": "a"}}) != spec_hash({**spec(), "facts": {"data": "b"}})


def test_the_newest_incomplete_run_with_the_same_spec_is_resumed(tmp_path):
    stores = [RunStore.create(tmp_path, spec(), now=datetime(2026, 1, day, tzinfo=UTC)) for day in (1, 2, 3)]
    other = RunStore.create(tmp_path, {**spec(), "name": "other"}, now=datetime(2026, 1, 4, tzinfo=UTC))
    finish(stores[2])
    for store in (*stores, other):
        store.close()

    assert find_resumable(tmp_path, spec()) == stores[1].folder
    with RunStore.start(tmp_path, spec()) as resumed, RunStore.start(tmp_path, spec(), resume=False) as new:
        assert resumed.folder == stores[1].folder
        assert new.folder not in {s.folder for s in stores}


def test_folders_that_are_no_runs_are_passed_over(tmp_path):
    (tmp_path / "runs" / f"20270101T000000Z-{spec_hash(spec())[:8]}").mkdir(parents=True)
    broken = tmp_path / "runs" / f"20270102T000000Z-{spec_hash(spec())[:8]}"
    broken.mkdir()
    (broken / "spec.json").write_text("[1")

    assert find_resumable(tmp_path, spec()) is None


def test_records_survive_and_finished_ones_are_known_on_resume(tmp_path):
    with RunStore.create(tmp_path, spec()) as store:
        store.append(record("a"), record("b", "infra"))
        store.append(record("c", "refused"))
    with (store.folder / "records.jsonl").open("ab") as stream:
        stream.write(b'{"key": "d", "torn')

    with RunStore.start(tmp_path, spec()) as resumed:
        assert resumed.torn == 1
        assert resumed.finished_keys() == {"a", "c"}
        resumed.append(record("b"))
        assert resumed.finished_keys() == {"a", "b", "c"}
        assert [r["key"] for r in resumed.records()] == ["a", "c", "b"]


def test_a_second_process_is_told_who_writes_the_run(tmp_path):
    code = (
        "import sys; from dspy_mama.tracking import RunStore\n"
        "store = RunStore.create(sys.argv[1], {'name': 'x'}); print('ready', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=-1, stdout=-1, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(DeclarationError, match=rf"written by process {process.pid}; .*runtime\.resume=false"):
            RunStore.start(tmp_path, {"name": "x"})
        process.kill()
        process.wait()
        with RunStore.start(tmp_path, {"name": "x"}) as store:
            assert store.finished_keys() == set()
    finally:
        process.kill()
        process.communicate()


def test_readers_need_no_lock_and_cannot_write(tmp_path):
    with RunStore.create(tmp_path, spec()) as store:
        store.append(record())
        reader = RunStore.open(store.folder)

        assert len(reader.records()) == 1
        with pytest.raises(ExecutionError, match="reading only"):
            reader.append(record("b"))


def test_threads_append_whole_lines(tmp_path):
    with RunStore.create(tmp_path, spec()) as store:
        threads = [
            threading.Thread(target=lambda n=n: [store.append(record(f"{n}-{i}", pad="x" * 9000)) for i in range(10)])
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(store.records()) == 80


def test_a_full_disk_leaves_no_half_record_and_a_clear_error(tmp_path, monkeypatch):
    import os

    with RunStore.create(tmp_path, spec()) as store:
        store.append(record("a"))
        real = os.write
        calls = iter(
            [
                lambda fd, data: real(fd, bytes(data)[:30]),
                lambda fd, data: (_ for _ in ()).throw(OSError(28, "No space left")),
            ]
        )
        monkeypatch.setattr(os, "write", lambda fd, data: next(calls)(fd, data))
        with pytest.raises(ExecutionError, match=r"records\.jsonl cannot be written .*No space left"):
            store.append(record("b"))
        monkeypatch.undo()
        store.append(record("c"))

        assert [r["key"] for r in store.records()] == ["a", "c"]
        assert store.read().torn == 0


def test_a_failed_write_keeps_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    import os

    with RunStore.create(tmp_path, spec()) as store:
        store.write("summary", {"n": 1})
        monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            store.write("summary", {"n": 2})
        monkeypatch.undo()

        assert store.load("summary") == {"n": 1}
        assert not list(store.folder.glob("*.tmp")) + list(store.folder.glob(".*.tmp"))


def test_no_key_reaches_any_file_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "Zq8vT1-opaque-value")
    with RunStore.create(tmp_path, {"name": "x", "lm": {"api_base": "http://u:Zq8vT1-opaque-value@h"}}) as store:
        store.append(record(error="401: Zq8vT1-opaque-value", raw="Authorization: Bearer Zq8vT1-opaque-value"))
        for part in ("program", "manifest", "summary"):
            store.write(part, {"note": "Zq8vT1-opaque-value"})

        assert all(b"opaque" not in p.read_bytes() for p in store.folder.rglob("*"))


def test_a_place_where_no_folder_can_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(DeclarationError, match=r"tracking\.root=.*file"):
        RunStore.create(tmp_path / "file", spec())


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(DeclarationError, match=r"not a run: it holds no spec\.json"):
        RunStore.open(tmp_path)


def test_a_missing_part_is_named(tmp_path):
    with (
        RunStore.create(tmp_path, spec()) as store,
        pytest.raises(DeclarationError, match=r"summary\.json cannot be read"),
    ):
        store.load("summary")

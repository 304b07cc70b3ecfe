"""Every optimiser, with an LM that it can help and with one that nothing can: what it learns from, makes and leaves."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from dspy_mama.optimize.diff import show_artifact
from dspy_mama.settings.optimize import OptimizerName
from optimize import replay
from optimize.canaries import Watch, assert_no_leak, assert_watched, canaries_in, canaries_of, canary_pairs
from optimize.compile_parts import RULE, shifted_stated, spoken_tokens, useless
from optimize.helped import HELPED, compiled, undecided

CUTTING = ("token_thresholds", "staged_bootstrap", "staged_gepa", "staged_mipro")


@dataclass(frozen=True)
class Made:
    """A compilation that was watched, and its folder."""

    result: object
    watch: Watch
    folder: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Compiles with an optimiser once, under watch and into a folder; every test of this file reads the same one."""
    done = {}

    def made_by(name):
        if name not in done:
            script, options = HELPED[name]
            watch, folder = Watch(script), tmp_path_factory.mktemp(name)
            stated = "stated" if script is shifted_stated else "token"
            with watch.over_everything():
                _, _, result = compiled(
                    name, watch, canary_pairs(), stated, folder=folder / "run", say=watch.say, **options
                )
            done[name] = Made(result, watch, folder / "run")
        return done[name]

    return made_by


def test_the_table_of_optimisers_is_whole():
    assert set(HELPED) == set(get_args(OptimizerName)) - {"none"}


@pytest.mark.parametrize("name", HELPED)
def test_an_lm_that_can_be_helped_is_helped_on_held_out_pairs(name, made):
    result = made(name).result
    assert result.kept, result.reason
    before, after = (side.value("joint_accuracy") for side in (result.test.before, result.test.after))
    assert before < (0.5 if "gepa" in name or "mipro" in name else 0.7)
    assert after > 0.9
    assert result.test.finding == "higher"


@pytest.mark.parametrize("name", ["gepa", "staged_gepa", "mipro", "staged_mipro"])
def test_the_experts_rule_comes_into_an_instruction(name, made):
    instructions = [p.signature.instructions for _, p in made(name).result.program.named_predictors()]
    assert any(RULE in text for text in instructions)
    assert any("{possible_diagnoses}" in text for text in instructions)


@pytest.mark.parametrize("name", CUTTING)
def test_cuts_come_between_the_shifted_probabilities_after_the_prompts_were_improved(name, made):
    program = made(name).result.program
    assert set(program.thresholds) == {"medical", "ethical", "legal"}
    assert all(0.30 < cut < 0.45 for cut in program.thresholds.values())
    base = made(name).result.candidates[0].program
    changed = [
        (one.signature.instructions, one.demos) != (two.signature.instructions, two.demos)
        for (_, one), (_, two) in zip(program.named_predictors(), base.named_predictors(), strict=True)
    ]
    assert any(changed) == name.startswith("staged_")


@pytest.mark.parametrize("name", HELPED)
def test_no_prompt_reward_demonstration_cut_or_choice_saw_a_test_pair(name, made):
    one = made(name)
    splits = one.result.splits
    assert {part: len(pairs) for part, pairs in splits.items()} == {"train": 16, "validation": 12, "test": 12}
    assert_watched(one.watch, name, one.result, splits)
    assert_no_leak(one.watch, one.result, splits)


@pytest.mark.parametrize("name", HELPED)
def test_no_file_of_a_compilation_holds_a_word_of_a_pair_outside_train(name, made):
    one = made(name)
    files = [path for path in one.folder.rglob("*") if path.is_file()]
    assert {"program.json", "splits.json", "diff.txt", "compile.json", "00.json", "01.json"} <= {p.name for p in files}
    words = set().union(*(canaries_in(path.read_text()) for path in files))
    assert words <= canaries_of(one.result.splits["train"])


def test_what_every_optimiser_made_predicts_the_same_in_a_new_process(made):
    here = []
    for name in HELPED:
        assert show_artifact(made(name).folder)[1]["diff"]["changed"]
        here.append(replay.predict(made(name).result.program.deepcopy()))
    paths = "".join(f"{made(name).folder / 'program.json'}\n" for name in HELPED)
    command = [sys.executable, str(Path(__file__).with_name("replay.py"))]
    done = subprocess.run(command, input=paths, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == here


def says_safe(request):
    """States the same low probability of every pair, which is right of two pairs in three."""
    return spoken_tokens(request, 0.3)


USELESS = {**dict.fromkeys(HELPED, useless), "reanchor": undecided, "token_thresholds": says_safe}


@pytest.mark.parametrize("name", USELESS)
def test_with_a_useless_lm_nothing_is_kept_and_the_program_is_as_it_was(name):
    _, program, result = compiled(name, USELESS[name])
    assert not result.kept
    assert result.test.finding == "not distinguishable"
    for (_, own), (_, given) in zip(result.program.named_predictors(), program.named_predictors(), strict=True):
        assert own.signature.instructions == given.signature.instructions
        assert own.demos == given.demos == []
        assert own.lm is given.lm
    assert result.program.thresholds == {}

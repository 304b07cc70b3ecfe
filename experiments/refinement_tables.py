"""Paper B: Tables I to V over generators and evaluators.

`python experiments/refinement_tables.py -m data=medsafetybench data.path=FOLDER refiner=paper
lm.roles.generator.model=A,B` is the paper's study: the generators swap, the evaluators stay. `-m` also sweeps
lm.roles.ethics.model=A,B, lm.roles.safety.model=A,B, refiner=paper,default, refiner.max_iterations=3,5 or
refiner.ethics_evaluators=1,3. A role with a key of its own:
'lm.roles.generator={model:A,api_key_env:KEY},{model:B,api_key_env:KEY2}'. Each choice is a run of its own; the sweep's
tables have a column for each, beside the paper's two.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from dspy_mama.core.resources import shipped
from dspy_mama.wiring.experiment import experiment_arguments
from dspy_mama.wiring.refinement_experiment import run_refinement_experiment


@hydra.main(version_base="1.3", config_path=str(shipped("conf")), config_name="config")
def main(config: DictConfig) -> float | None:
    """Runs one choice and returns the share of prompts that converged."""
    return run_refinement_experiment(config)


if __name__ == "__main__":
    experiment_arguments("default")
    main()

"""Paper A, Table 3: the systems on one data set. `python experiments/table3_systems.py -m data=kqa data.path=FOLDER`.

Without `-m` one system runs; `-m` sweeps all of them (or `system=baseline,rag`). Each is a run of its own.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from dspy_mama.core.resources import shipped
from dspy_mama.wiring.experiment import experiment_arguments, run_experiment


@hydra.main(version_base="1.3", config_path=str(shipped("conf")), config_name="config")
def main(config: DictConfig) -> float | None:
    """Runs one system and returns its average macro-F1."""
    return run_experiment(config, varied="system")


if __name__ == "__main__":
    experiment_arguments("table3")
    main()

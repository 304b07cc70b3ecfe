"""Paper A, ablation study on the RAG system. `python experiments/ablation_study.py -m data=kqa data.path=FOLDER`.

Without `-m` the full method runs; `-m` sweeps all ablations (or `ablation=full,ma`). Each is a run of its own.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from dspy_mama.core.resources import shipped
from dspy_mama.wiring.experiment import experiment_arguments, run_experiment


@hydra.main(version_base="1.3", config_path=str(shipped("conf")), config_name="config")
def main(config: DictConfig) -> float | None:
    """Runs one ablation and returns its average macro-F1."""
    return run_experiment(config, varied="ablation")


if __name__ == "__main__":
    experiment_arguments("ablation")
    main()

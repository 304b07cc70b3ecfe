"""Paper C: the panel and its baselines. `python experiments/diagnosis_panel.py data=mac data.path=FILE`.

`-m` sweeps: panel.doctors=2,3,4,5, panel.supervisor=true,false, panel.specialties=none,chosen, panel.rounds=13,25,
lm=openai,vllm, panel.baselines.paths=5,10,20 or panel.baselines.rounds=2,4,10. Each is a run of its own, and the
sweep's table stands beside Tables 1 and 2.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from dspy_mama.core.resources import shipped
from dspy_mama.wiring.experiment import experiment_arguments
from dspy_mama.wiring.panel_experiment import run_panel_experiment


@hydra.main(version_base="1.3", config_path=str(shipped("conf")), config_name="config")
def main(config: DictConfig) -> float | None:
    """Runs one setting and returns the accuracy of its most likely diagnosis at the first stage."""
    return run_panel_experiment(config)


if __name__ == "__main__":
    experiment_arguments("default")
    main()

"""MLflow reads its telemetry switch when it is imported, which these tests do themselves."""

import os

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

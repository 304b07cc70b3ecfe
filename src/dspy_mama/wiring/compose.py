"""From conf files and overrides to `Settings`; the only place that knows Hydra."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped
from dspy_mama.settings import Settings, from_mapping
from dspy_mama.settings.overrides import literal

_FIELD = re.compile(r"^[A-Za-z_][\w]*(\.[\w]+)+=")
_ROLES = "lm.roles."


def hydra_overrides(overrides: Sequence[str]) -> list[str]:
    """Returns overrides as Hydra takes them: a dotted field may be set whether or not the group's file names it.

    Unknown fields are found by the settings themselves, with a clearer message than Hydra's. A value that Hydra's
    grammar cannot read, such as `質問` or `gold (1).csv`, is taken as the text that it is, unless it begins a quote, a
    list or a mapping.

    Raises:
        DeclarationError: An argument is no override, or cannot be read.
    """
    ready = []
    for override in overrides:
        if "=" not in override:
            raise DeclarationError(
                f"{override!r} is not understood: overrides look like group=choice or group.field=value"
            )
        ready.append(f"++{_readable(override)}" if _FIELD.match(override) else override)
    return ready


def _readable(override: str) -> str:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    field, _, value = override.partition("=")
    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        if value.lstrip()[:1] not in ("'", '"', "[", "{"):
            return f"{field}={literal(value)}"
        raise DeclarationError(
            f"the value of {field} cannot be read: close every quote and bracket, and inside a list or mapping put "
            f'text of other letters and signs in double quotes, such as {field}=["質問"]'
        ) from None
    return override


def settings_from(config: Any) -> Settings:
    """Returns the settings of a composed config.

    Raises:
        DeclarationError: A value is missing, unknown or out of range.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        first, field = str(error).splitlines()[0], getattr(error, "full_key", None) or "data.path"
        raise DeclarationError(f"{first} (set it on the command line, such as {field}=VALUE)") from None
    if not isinstance(values, dict):
        raise DeclarationError("the config is not a mapping of groups")
    values = {str(key): value for key, value in values.items() if key != "hydra"}
    lm = values.get("lm")
    if isinstance(lm, dict):  # a role's own settings stand over the default's
        roles = lm.get("roles") or {}
        lm["roles"] = {role: {**(lm.get("default") or {}), **(spec or {})} for role, spec in roles.items()}
    return from_mapping(Settings, values)


_NO_CHOICE = re.compile(
    r"Could not find '([^'/]+)/([^']*)'.*?Available options in '[^']*':(.*?)Config search path", re.DOTALL
)
_NO_GROUP = re.compile(r"Could not override '([^']+)'")


def _in_our_words(message: str) -> str:
    """Returns Hydra's message as one line that names what there is, without its search path."""
    if found := _NO_CHOICE.search(message):
        group, choice, options = found.groups()
        return f"{group}={choice}: there is no such choice; choices are {', '.join(options.split())}"
    if found := _NO_GROUP.search(message):
        groups = sorted(folder.name for folder in shipped("conf").iterdir() if folder.is_dir())
        return f"{found[1]}: there is no such group of settings; groups are {', '.join(groups)}"
    return " ".join(line.strip() for line in message.splitlines() if line.strip())[:800]


def compose(overrides: Sequence[str] = (), config: str = "config") -> Settings:
    """Composes settings from the shipped conf groups.

    Args:
        overrides: `group=choice` and `group.field=value`, as on the command line.
        config: Name of the primary config.

    Raises:
        DeclarationError: A group, choice or field is unknown, or a value does not fit.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    ready = hydra_overrides(overrides)
    outer = GlobalHydra.instance().hydra if GlobalHydra.instance().is_initialized() else None
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(shipped("conf").resolve())):
            return settings_from(hydra_compose(config_name=config, overrides=ready))
    except (HydraException, OmegaConfBaseException) as error:
        raise DeclarationError(_in_our_words(str(error))) from None
    finally:
        if outer is not None:
            GlobalHydra.instance().initialize(outer)

"""Prints pip's configuration as settings of uv, which does not read pip's files.

The operator configures the sources of packages in one place: pip.conf and the PIP_ variables.
Each line is NAME=VALUE for uv's process, or an option that uv reads only from its command
line. A variable of uv (UV_DEFAULT_INDEX and so on) takes precedence over pip's setting.
"""

import configparser
import os
import sys


def pip_files() -> list[str]:
    """Return the paths of pip's configuration files, the weakest first."""
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = os.path.expanduser("~")
    shared = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    user = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [
        *(os.path.join(folder, "pip", "pip.conf") for folder in reversed(shared.split(":"))),
        "/etc/pip.conf",
        os.path.join(home, ".pip", "pip.conf"),
        os.path.join(user, "pip", "pip.conf"),
        os.path.join(sys.prefix, "pip.conf"),
        *([named] if named else []),
    ]


def pip_settings() -> dict[str, str]:
    """Return pip's settings for an installation, by their long names."""
    parser = configparser.RawConfigParser()
    parser.read(pip_files(), encoding="utf-8")
    settings: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            settings.update({key.replace("_", "-"): value for key, value in parser.items(section)})
    for key, value in os.environ.items():
        if key.startswith("PIP_") and value:
            settings[key[4:].lower().replace("_", "-")] = value
    return settings


def uv_settings(pip: dict[str, str]) -> list[str]:
    """Translate pip's settings."""
    variables: dict[str, str] = {"UV_SYSTEM_CERTS": "1"}
    options = []
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    if not any(os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")) and pip.get("index-url"):
        variables["UV_DEFAULT_INDEX"] = pip["index-url"]
    if pip.get("extra-index-url"):
        variables["UV_EXTRA_INDEX_URL"] = " ".join(pip["extra-index-url"].split())
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # pip compares the versions of all indexes
    # uv fails where a folder is missing; pip warns.
    links = [link for link in pip.get("find-links", "").split() if "://" in link or os.path.exists(link)]
    if links:
        variables["UV_FIND_LINKS"] = ",".join(links)
    if pip.get("trusted-host"):
        variables["UV_INSECURE_HOST"] = " ".join(pip["trusted-host"].split())
    for key, name in (("cert", "SSL_CERT_FILE"), ("client-cert", "SSL_CLIENT_CERT"), ("proxy", "ALL_PROXY")):
        if pip.get(key):
            variables[name] = pip[key]
    if timeout := pip.get("timeout", pip.get("default-timeout")):
        variables["UV_HTTP_TIMEOUT"] = timeout
    return [*(f"{name}={value}" for name, value in variables.items() if not os.environ.get(name)), *options]


if __name__ == "__main__":
    print("\n".join(uv_settings(pip_settings())))

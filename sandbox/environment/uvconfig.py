"""Prints pip's configuration as settings of uv, which does not read pip's files.

The operator configures the sources of packages in one place: pip.conf and the PIP_ variables.
Each line is NAME=VALUE for uv's process, or an option that uv reads only from its command
line. A variable of uv (UV_FIND_LINKS and so on) takes precedence over pip's setting. If
one of uv's variables names an index, uv's variables name all indexes, and pip's are not used.

uv takes a package from the first index that has its name, so a higher version of a company's package in
a public index replaces nothing. The order is: pip's index-url, its extra-index-url, and PyPI last,
wherever it is named.
"""

import configparser
import os
import sys
import urllib.parse

PYPI = "https://pypi.org/simple"
INDEX_VARIABLES = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")


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


def pip_indexes(pip: dict[str, str]) -> list[str]:
    """Return the addresses of the indexes that pip's settings name, the first one first."""
    if not pip.get("index-url") and not pip.get("extra-index-url"):
        return []
    named = [pip.get("index-url") or PYPI, *pip.get("extra-index-url", "").split()]
    return sorted(dict.fromkeys(named), key=is_pypi)


def is_pypi(url: str) -> bool:
    return (urllib.parse.urlsplit(url).hostname or "").rstrip(".") in ("pypi.org", "pypi.python.org")


def uv_settings(pip: dict[str, str]) -> list[str]:
    """Translate pip's settings."""
    variables: dict[str, str] = {"UV_SYSTEM_CERTS": "1"}
    options = []
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    indexes = pip_indexes(pip)
    if indexes and not any(os.environ.get(name) for name in INDEX_VARIABLES):
        variables["UV_DEFAULT_INDEX"] = indexes[-1]  # uv asks its default index last
        if len(indexes) > 1:
            variables["UV_INDEX"] = " ".join(indexes[:-1])
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

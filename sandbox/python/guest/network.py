"""The network of a guest.

Most guests have no network. If the network is enabled for a sandbox, its guest has a private network namespace with a
loopback device and one listener. The service serves this listener from outside as an HTTP proxy. The guest can reach
nothing else.

The kernel refuses all other connections. explain_refusals makes Python say why, in a text that an agent can act on.
"""

import functools
import importlib.util
import os
import socket
import sys

OFF = "the network is off for this sandbox: create one with enable_network_access and its hosts in allowed_hosts"
ON = "this sandbox reaches hosts only through its HTTP proxy: leave the client's proxy settings (trust_env) as they are"

_refusal = OFF


def switch_on(environment: dict) -> None:
    """Makes programs of this process use the listener in its network namespace, which environment names."""
    global _refusal
    os.environ.update(environment)
    sys.meta_path.insert(0, _AiohttpFinder())
    _refusal = ON


class _AiohttpFinder:
    """Imports aiohttp.client and makes trust_env the default of its sessions, so that they use the proxy as other
    clients do."""

    def find_spec(self, name: str, *_):
        if name != "aiohttp.client":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module) -> None:
            load(module)
            defaults = module.ClientSession.__init__.__kwdefaults__
            if "trust_env" in defaults:
                defaults["trust_env"] = True

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def explain_refusals() -> None:
    """Makes the socket module say why the kernel refuses a connection. The zygote calls this once."""
    socket.getaddrinfo = _explained(socket.getaddrinfo)
    socket.gethostbyname = _explained(socket.gethostbyname)
    socket.socket.__init__ = _explained(socket.socket.__init__)  # type: ignore[method-assign]
    socket.socket.connect = _explained(socket.socket.connect)  # type: ignore[method-assign]


def _explained(call):
    @functools.wraps(call)
    def explained(*args, **named):
        try:
            return call(*args, **named)
        except (PermissionError, socket.gaierror) as error:
            raise type(error)(error.errno, _refusal) from None

    return explained

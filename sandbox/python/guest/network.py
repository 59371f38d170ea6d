"""The network of a guest.

Most guests have no network. If the network is enabled for a sandbox, its guest has a private network namespace with a
loopback device and one listener. The service serves this listener from outside as an HTTP proxy. The guest can reach
nothing else.

The kernel refuses all other connections. explain_refusals makes Python say why, in a text that an agent can act on.
"""

import fcntl
import functools
import importlib.util
import os
import socket
import struct
import sys

import lockdown

OFF = "the network is off for this sandbox: create one with enable_network_access and its hosts in allowed_hosts"
ON = "this sandbox reaches hosts only through its HTTP proxy: leave the client's proxy settings (trust_env) as they are"

_CLONE_NEWNET, _SIOCSIFFLAGS, _IFF_UP = 0x40000000, 0x8914, 1
_BACKLOG = 64

_refusal = OFF


def switch_on(own: dict, folder: int) -> int:
    """Moves this process to a new network namespace, which own describes, and returns the descriptor of a listener in
    it.

    folder is the descriptor of /proc/sys/net, which this function closes, or -1 if own has no sysctls. Call it before
    the lockdown, which forbids it.
    """
    global _refusal
    lockdown.unshare(_CLONE_NEWNET)
    for path, value in own.get("sysctls", {}).items():
        # The kernel looks the path up in the network namespace of this process.
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
        os.write(fd, value.encode())
        os.close(fd)
    if folder >= 0:
        os.close(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        fcntl.ioctl(listener, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))
        listener.bind((own["host"], own["port"]))
        listener.listen(_BACKLOG)
        fd = listener.detach()
    os.environ.update(own["environment"])
    sys.meta_path.insert(0, _AiohttpFinder())
    _refusal = ON
    return fd


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

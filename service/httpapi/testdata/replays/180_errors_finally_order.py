log = []
def f(x):
    try:
        log.append(f"try {x}")
        if x == 1:
            raise KeyError(x)
        if x == 2:
            return "early"
        return "normal"
    except KeyError as e:
        log.append(f"caught {e!r}")
        return "handled"
    else:
        log.append("else")
    finally:
        log.append(f"finally {x}")
print([f(i) for i in range(3)])
log

"""Names that libraries and Python have removed, which code and models learned from earlier versions.

A name is looked up only after it was not found, so an entry does no harm where the name still exists.
"""

import builtins
import re

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

_REMOVED_IN = "it was removed in {}: use {}"

# By package: the removed name, the version without it, and what takes its place. The source is the list of changes of
# each version.
_ATTRIBUTES = {
    "pandas": {
        "append": ("pandas 2.0", "pd.concat([first, second])"),
        "applymap": ("pandas 3.0", ".map(function)"),
        "as_matrix": ("pandas 1.0", ".to_numpy()"),
        "backfill": ("pandas 3.0", ".bfill()"),
        "convert_objects": ("pandas 1.0", ".infer_objects() or pd.to_numeric"),
        "datetime": ("pandas 2.0", "the module datetime"),
        "first": ("pandas 3.0", ".loc with a range of dates"),
        "Float64Index": ("pandas 2.0", "pd.Index"),
        "from_items": ("pandas 1.0", ".from_dict"),
        "get_value": ("pandas 1.0", ".at[row, column]"),
        "Int64Index": ("pandas 2.0", "pd.Index"),
        "is_monotonic": ("pandas 2.0", ".is_monotonic_increasing"),
        "iteritems": ("pandas 2.0", ".items()"),
        "ix": ("pandas 1.0", ".loc or .iloc"),
        "last": ("pandas 3.0", ".loc with a range of dates"),
        "lookup": ("pandas 2.0", ".loc, or .melt and .merge"),
        "mad": ("pandas 2.0", "(x - x.mean()).abs().mean()"),
        "np": ("pandas 2.0", "import numpy as np"),
        "pad": ("pandas 3.0", ".ffill()"),
        "Panel": ("pandas 1.0", "a DataFrame with a MultiIndex"),
        "rolling_mean": ("pandas 0.23", ".rolling(n).mean()"),
        "scatter_matrix": ("pandas 0.25", "pd.plotting.scatter_matrix"),
        "set_value": ("pandas 1.0", ".at[row, column] = value"),
        "slice_shift": ("pandas 2.0", ".shift"),
        "sort": ("pandas 0.20", ".sort_values or .sort_index"),
        "swapaxes": ("pandas 3.0", ".transpose()"),
        "TimeGrouper": ("pandas 1.0", "pd.Grouper(freq=...)"),
        "tshift": ("pandas 2.0", ".shift(freq=...)"),
        "value_counts": ("pandas 3.0", "the method .value_counts()"),
        "week": ("pandas 2.0", ".isocalendar().week"),
        "weekofyear": ("pandas 2.0", ".isocalendar().week"),
    },
    "numpy": {
        "asscalar": ("numpy 1.23", ".item()"),
        "in1d": ("numpy 2.4", "np.isin"),
        "product": ("numpy 2.0", "np.prod"),
        "row_stack": ("numpy 2.4", "np.vstack"),
        "tostring": ("numpy 2.3", ".tobytes()"),
        "trapz": ("numpy 2.4", "np.trapezoid"),
    },
    "matplotlib": {
        "get_cmap": ("matplotlib 3.9", "matplotlib.colormaps[name]"),
        "register_cmap": ("matplotlib 3.9", "matplotlib.colormaps.register"),
    },
    "scipy": {
        "cumtrapz": ("SciPy 1.14", "scipy.integrate.cumulative_trapezoid"),
        "simps": ("SciPy 1.14", "scipy.integrate.simpson"),
        "trapz": ("SciPy 1.14", "scipy.integrate.trapezoid"),
    },
    "sklearn": {
        "get_feature_names": ("scikit-learn 1.2", ".get_feature_names_out()"),
        "plot_confusion_matrix": ("scikit-learn 1.2", "ConfusionMatrixDisplay.from_estimator"),
        "plot_roc_curve": ("scikit-learn 1.2", "RocCurveDisplay.from_estimator"),
    },
    "networkx": {
        "from_numpy_matrix": ("NetworkX 3.0", "nx.from_numpy_array"),
        "info": ("NetworkX 3.0", "print(graph)"),
        "to_numpy_matrix": ("NetworkX 3.0", "nx.to_numpy_array"),
    },
    "PIL": {
        "ANTIALIAS": ("Pillow 10", "Image.Resampling.LANCZOS"),
        "getsize": ("Pillow 10", ".getbbox or .getlength"),
        "textsize": ("Pillow 10", ".textbbox or .textlength"),
    },
    "builtins": {
        "basestring": ("Python 3", "str"),
        "has_key": ("Python 3", "key in dictionary"),
        "iteritems": ("Python 3", ".items()"),
        "iterkeys": ("Python 3", ".keys()"),
        "itervalues": ("Python 3", ".values()"),
        "long": ("Python 3", "int"),
        "raw_input": ("Python 3", "a value in the code: a run has no terminal"),
        "reduce": ("Python 3", "functools.reduce"),
        "unichr": ("Python 3", "chr"),
        "unicode": ("Python 3", "str"),
        "xrange": ("Python 3", "range"),
    },
    "collections": {
        name: ("Python 3.10", "collections.abc." + name)
        for name in ("Callable", "Hashable", "Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "Set")
    },
    "fractions": {"gcd": ("Python 3.9", "math.gcd")},
    "inspect": {"getargspec": ("Python 3.11", "inspect.signature")},
    "time": {"clock": ("Python 3.8", "time.perf_counter")},
}

# By the name of a function: its removed arguments.
_KEYWORDS = {
    "fillna": {"method": ("pandas 3.0", ".ffill() or .bfill()")},
    "groupby": {"axis": ("pandas 3.0", ".T.groupby(...)"), "squeeze": ("pandas 2.0", ".squeeze() of the result")},
    "hist": {"normed": ("matplotlib 3.1", "density=True")},
    "read_csv": {
        "date_parser": ("pandas 3.0", "date_format, or pd.to_datetime"),
        "delim_whitespace": ("pandas 3.0", r"sep=r'\s+'"),
        "error_bad_lines": ("pandas 2.0", "on_bad_lines='skip'"),
        "squeeze": ("pandas 2.0", ".squeeze('columns') of the result"),
    },
    "replace": {"method": ("pandas 3.0", ".ffill() or .bfill()")},
    "resample": {"how": ("pandas 0.25", "a method of the result, such as .mean()")},
    "sort_values": {"columns": ("pandas 0.20", "by=")},
    "to_csv": {"line_terminator": ("pandas 2.0", "lineterminator=")},
}

_UNEXPECTED = re.compile(r"(?:\w+\.)*(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def package(obj: object) -> str:
    """Returns the package of a module, a class, or the class of a value."""
    kind = type(obj)
    if kind.__name__ == "module":
        return str(obj.__name__).partition(".")[0]  # type: ignore[attr-defined]
    return str(obj.__module__ if issubclass(kind, type) else kind.__module__).partition(".")[0]


def attribute(of: str, name: str) -> str:
    """Returns the hint for a name that a package has no more, or ""."""
    return _hint(_ATTRIBUTES.get(of, {}).get(name))


def keyword(message: str) -> str:
    """Returns the hint for the message of a TypeError about an argument that a function has no more, or ""."""
    found = _UNEXPECTED.match(message)
    return _hint(_KEYWORDS.get(found[1], {}).get(found[2])) if found else ""


def _hint(entry: "tuple[str, str] | None") -> str:
    return _REMOVED_IN.format(*entry) if entry else ""

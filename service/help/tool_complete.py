# Completions at a cursor, from jedi's analysis of the text. context has code, cursor, and before: the
# code that ran earlier in the same session.
import os
import tempfile

text = context["code"][: context["cursor"]]
before = context["before"] + "\n" if context["before"] else ""
line = (before + text).count("\n") + 1
column = len(text.rpartition("\n")[2])
matches = []
start = context["cursor"]
try:
    import jedi
    from jedi.api.environment import InterpreterEnvironment

    environment = InterpreterEnvironment()  # this process: a guest cannot start another one
    jedi.settings.cache_directory = os.path.join(tempfile.gettempdir(), "jedi")
    for found in jedi.Script(before + context["code"], environment=environment).complete(line, column):
        start = context["cursor"] - found.get_completion_prefix_length()
        matches.append({"text": found.name_with_symbols, "type": found.type})
except Exception:  # jedi fails on some texts, such as a deep expression, and an environment may lack it
    pass
__result__ = {"matches": matches[:200], "cursor_start": start, "cursor_end": context["cursor"]}

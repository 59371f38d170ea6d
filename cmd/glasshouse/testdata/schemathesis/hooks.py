"""Values for the formats of strings in Glasshouse's OpenAPI document, which JSON Schema cannot describe."""

import schemathesis
from hypothesis import strategies as st

schemathesis.openapi.format(
    "sql", st.sampled_from(["SELECT 1", "SELECT count(*) FROM users", "TABLE documents LIMIT 1"])
)
schemathesis.openapi.format("python-expression", st.sampled_from(["total > 1", "n == 2", "'x' in names"]))
schemathesis.openapi.format("environment", st.just("default"))
schemathesis.openapi.format("host-pattern", st.sampled_from(["example.org", "*.example.org:443", "192.0.2.0/24"]))
schemathesis.openapi.format("module", st.sampled_from(["json", "math", "datetime"]))
schemathesis.openapi.format("file-path", st.from_regex(r"[a-z0-9]{1,20}(/[a-z0-9]{1,20}){0,2}", fullmatch=True))

from processor_pipeline import AsyncProcessor


class DatabaseConnector(AsyncProcessor):
    """Runs a statement with named parameters and returns its rows."""

    name = "database_connector"

    def validate(self, data):
        if "query" not in data:
            raise ValueError('pass {"query": "SELECT ...", "parameters": {...}}')

    async def process(self, data):
        rows = await db_query(data["query"], data.get("parameters", {}))
        debug(f"{len(rows)} rows")
        # Add your transformation logic here
        return {"rows": rows, "count": len(rows)}


connector = DatabaseConnector()
data = context.get("data") or {"query": "SELECT name, plan FROM users WHERE country = :country LIMIT 5", "parameters": {"country": "Japan"}}
__result__ = await connector.run(data)

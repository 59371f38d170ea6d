from processor_pipeline import AsyncProcessor


class DataProcessor(AsyncProcessor):
    """Returns the result of transform for rows or any other value."""

    name = "data_processor"

    async def process(self, data):
        debug("processing", data={"type": type(data).__name__})
        return self.transform(data)

    def transform(self, data):
        # Add your transformation logic here
        return {"processed": True, "data": data}


processor = DataProcessor()
data = context.get("data")
if data is None:
    data = await db_query("SELECT id, content FROM pipeline_input WHERE content IS NOT NULL ORDER BY id LIMIT 5")
__result__ = await processor.run(data)

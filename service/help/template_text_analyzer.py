import re
from collections import Counter

from processor_pipeline import AsyncProcessor


class TextAnalyzer(AsyncProcessor):
    """Counts words, sentences and the most common words of a text or of a list of texts."""

    name = "text_analyzer"

    async def process(self, data):
        texts = [data] if isinstance(data, str) else [str(t) for t in data]
        words = re.findall(r"[\w']+", " ".join(texts).lower())
        # Add your transformation logic here
        return {
            "texts": len(texts),
            "words": len(words),
            "sentences": sum(len(re.findall(r"[.!?]+", t)) for t in texts),
            "most_common": Counter(w for w in words if len(w) > 3).most_common(10),
        }


analyzer = TextAnalyzer()
data = context.get("data")
if data is None:
    data = [row["content"] for row in await db_query("SELECT content FROM articles ORDER BY id LIMIT 20")]
__result__ = await analyzer.run(data)

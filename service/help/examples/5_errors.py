# Catching an error: a write is refused
try:
    await db_query("UPDATE documents SET processed = true WHERE id = :id", {"id": 1})
except ReadOnlyError as error:
    __result__ = {"refused": str(error), "reason": error.reason}

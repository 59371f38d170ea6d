# A statement that writes is not run. It waits until an admin applies or rejects it.
db_query("UPDATE documents SET processed = true WHERE NOT processed AND created_at < now() - interval '300 days'")

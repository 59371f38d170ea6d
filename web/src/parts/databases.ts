import type { Database } from "../api/records";
import { useLoaded } from "./loaded";

// useDatabases returns the databases that the person may use, the default one first; none before they are loaded.
export function useDatabases(): Database[] {
  return useLoaded<{ databases: Database[] }>("/databases").answer?.databases ?? [];
}

// useDatabaseNames returns the names of the databases if there are several. Otherwise no choice and no column is needed.
export function useDatabaseNames(): string[] {
  const databases = useDatabases();
  return databases.length > 1 ? databases.map(({ name }) => name) : [];
}
